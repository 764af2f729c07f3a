"""The artefact folder, as the controller sees it: a manifest and where its files are. Does not copy anything to hosts."""

from __future__ import annotations

import hashlib
import os
import re

from ansible.errors import AnsibleError
from ansible.module_utils.urls import open_url

MANIFEST = "manifest.sha256"
LINE = re.compile(r"^([0-9a-f]{64}) [ *](\S.*)$")


def is_url(place):
    return place.startswith(("http://", "https://"))


def parse(text, place):
    """The manifest as {path: sha256}. A line that is not understood, or leads out of the folder, is an error."""
    files = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        found = LINE.match(line)
        if not found:
            raise AnsibleError(f"{place}/{MANIFEST}, line {number}: not '<64 hex digits>  <path>' as sha256sum writes it")
        path = found.group(2)[2:] if found.group(2).startswith("./") else found.group(2)
        if path.startswith("/") or ".." in path.split("/"):
            raise AnsibleError(f"{place}/{MANIFEST}, line {number}: {path} leads out of the folder")
        files[path] = found.group(1)
    return files


def read(place):
    """Reads the manifest of a folder or URL."""
    if not place:
        raise AnsibleError("kud_artifacts is not set: name the folder that 'kud bundle' has filled, or its URL")
    place = place.rstrip("/")
    if is_url(place):
        try:
            return parse(open_url(f"{place}/{MANIFEST}", timeout=30).read().decode(), place)
        except OSError as err:
            raise AnsibleError(f"cannot read {place}/{MANIFEST}: {err}") from err
    try:
        with open(os.path.join(place, MANIFEST), encoding="utf-8") as file:
            return parse(file.read(), place)
    except OSError as err:
        raise AnsibleError(f"cannot read {place}/{MANIFEST}: {err.strerror}; 'kud bundle {place}' writes it") from err


def digest(path):
    total = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            total.update(block)
    return total.hexdigest()

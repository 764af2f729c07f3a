"""Fills the artefact folder: fetches what versions.yml names, and takes nothing whose checksum differs. Does not install anything."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile

MANIFEST = "manifest.sha256"
PINS = "pins.json"
PROXY = "https://proxy.golang.org"


class Problem(Exception):
    """Something that the user is told without a trace."""


def plan(versions, sources, arch, only=()):
    """What is to be fetched: one entry for each source, with everything filled in."""
    made = []
    for source in sources:
        if only and source["component"] not in only:
            continue
        version = versions[source["version"]]
        fill = {"version": version, "number": version.lstrip("v"), "arch": arch}
        folder = f"{source['component']}/{versions[source.get('into', source['version'])]}"
        entry = {"component": source["component"], "folder": folder, "source": source, "fill": fill}
        made.append(entry)
    return made


def files(entry):
    """The paths in the folder that the entry makes."""
    names = [_names(one, entry["fill"])[1] for one in entry["source"].get("programs", [])] + entry["source"].get("files", [])
    return [f"{entry['folder']}/{name}" for name in names]


def _names(program, fill):
    """What a program is called where it comes from, and in the folder."""
    name = program.format(**fill).split("=")
    return name[0], name[-1]


def fetch(entry, folder, say, pin=False):
    """Puts the files of one entry into the folder. With pin, what has no checksum is taken as it is, and its digest kept."""
    source, fill = entry["source"], entry["fill"]
    target = os.path.join(folder, entry["folder"])
    os.makedirs(target, exist_ok=True)
    trust = Trust(folder, pin)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as work:
        if "go_module" in source:
            _module(source, fill, work, target, say)
        elif _url(source, fill).endswith((".tar.gz", ".tgz")):
            archive = os.path.join(work, "archive")
            _download(_url(source, fill), archive, source, fill, say, trust)
            _unpack(archive, source, fill, target)
        else:
            for program in source["programs"]:
                name, called = _names(program, fill)
                made = os.path.join(work, called)
                filled = {**fill, "program": name}
                _download(_url(source, filled), made, source, filled, say, trust)
                _place(made, os.path.join(target, called), 0o644 if called.endswith(".yaml") else 0o755)


class Trust:
    """The digests of files that have no checksum of their publisher, as they were when somebody pinned them."""

    def __init__(self, folder, pin):
        self.path, self.pin = os.path.join(folder, PINS), pin
        try:
            with open(self.path, encoding="utf-8") as file:
                self.known = json.load(file)
        except FileNotFoundError:
            self.known = {}

    def digest(self, url):
        if url not in self.known and not self.pin:
            raise Problem(f"{url} has no checksum of its publisher: look at it, and then say --pin, which keeps the digest of what comes in {self.path}")
        return self.known.get(url)

    def keep(self, url, digest):
        self.known[url] = digest
        with open(self.path + ".part", "w", encoding="utf-8") as file:
            json.dump(self.known, file, indent=1, sort_keys=True)
        os.replace(self.path + ".part", self.path)


def _url(source, fill):
    return source["url"].format(**{"program": "", **fill})


def _open(url):
    try:
        return urllib.request.urlopen(url, timeout=60)  # noqa: S310: the URLs are those of versions.yml
    except (urllib.error.URLError, OSError) as err:
        raise Problem(f"cannot fetch {url}: {getattr(err, 'reason', err)}") from err


def _download(url, path, source, fill, say, trust):
    if "sha256" in source or "checksum_url" in source:
        want = source.get("sha256") or _published(source, fill, url)
    else:
        want = trust.digest(url)
    say(url)
    total = hashlib.sha256()
    with _open(url) as answer, open(path, "wb") as file:
        while block := answer.read(1 << 20):
            total.update(block)
            file.write(block)
    if want is None:
        trust.keep(url, total.hexdigest())
    elif total.hexdigest() != want:
        raise Problem(f"{url} has SHA-256 {total.hexdigest()}, and ought to have {want}")


def _published(source, fill, url):
    """The SHA-256 that the publisher gives: a file with the digest alone, or lines of digests and names."""
    address = source["checksum_url"].format(**{"program": "", **fill})
    with _open(address) as answer:
        lines = [line.split() for line in answer.read().decode().splitlines() if line.strip()]
    if len(lines) == 1:
        found = lines[0][0]
    else:
        found = next((line[0] for line in lines if len(line) > 1 and line[1].lstrip("*").rsplit("/", 1)[-1] == url.rsplit("/", 1)[-1]), "")
    if not re.fullmatch(r"[0-9a-f]{64}", found):
        raise Problem(f"{address} gives no SHA-256 of {url}")
    return found


def _unpack(archive, source, fill, target):
    """Takes each program of the archive, whatever folder it is in there."""
    with tarfile.open(archive) as tar:
        members = {os.path.basename(one.name): one for one in tar.getmembers() if one.isfile()}
        for program in source["programs"]:
            name, called = _names(program, fill)
            if name not in members:
                raise Problem(f"{_url(source, fill)} has no {name}")
            made = os.path.join(os.path.dirname(archive), called)
            with open(made, "wb") as file:
                shutil.copyfileobj(tar.extractfile(members[name]), file)
            _place(made, os.path.join(target, called), 0o755)


def _module(source, fill, work, target, say):
    """Files of a Go module, which must have the hash that the checksum database has: the h1 of go.sum."""
    name = re.sub(r"[A-Z]", lambda m: "!" + m.group().lower(), source["go_module"])
    proxy = next((one for one in re.split(r"[,|]", os.environ.get("GOPROXY", "")) if one.startswith("http")), PROXY)
    url = f"{proxy.rstrip('/')}/{name}/@v/{fill['version']}.zip"
    archive = os.path.join(work, "module.zip")
    say(f"{source['go_module']}@{fill['version']}")
    with _open(url) as answer, open(archive, "wb") as file:
        shutil.copyfileobj(answer, file)
    have = module_hash(archive)
    if have != source["h1"]:
        raise Problem(f"{source['go_module']}@{fill['version']} has the hash {have}, versions.yml says {source['h1']}")
    prefix = f"{source['go_module']}@{fill['version']}/"
    tree = os.path.join(work, "tree")
    with zipfile.ZipFile(archive) as pack:
        for one in pack.namelist():
            if one.startswith(prefix) and ".." not in one.split("/"):
                place = os.path.join(tree, one[len(prefix):])
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with pack.open(one) as from_, open(place, "wb") as to:
                    shutil.copyfileobj(from_, to)
    for made in source["files"]:
        _manifest(source, tree, made, os.path.join(target, made))


def _manifest(source, tree, made, place):
    at = os.path.join(tree, source["take"])
    if os.path.isdir(at):
        kubectl = shutil.which("kubectl")
        if kubectl is None:
            raise Problem(f"{made} is made by 'kubectl kustomize', and there is no kubectl on this machine")
        done = subprocess.run([kubectl, "kustomize", at], capture_output=True, check=False)
        if done.returncode != 0:
            raise Problem(f"cannot make {made}: {done.stderr.decode().strip()}")
        with open(place + ".part", "wb") as file:
            file.write(done.stdout)
        _place(place + ".part", place, 0o644)
    else:
        _place(at, place, 0o644)


def module_hash(archive):
    """golang.org/x/mod/sumdb/dirhash's Hash1."""
    lines = []
    with zipfile.ZipFile(archive) as pack:
        for name in sorted(pack.namelist()):
            lines.append(f"{hashlib.sha256(pack.read(name)).hexdigest()}  {name}\n")
    return "h1:" + base64.b64encode(hashlib.sha256("".join(lines).encode()).digest()).decode()


def _place(made, path, mode):
    os.chmod(made, mode)
    os.replace(made, path)


def write_manifest(folder):
    """Writes the manifest of what is there, and returns how many files that are."""
    lines = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(at, name)
            relative = os.path.relpath(path, folder)
            if relative in (MANIFEST, PINS) or name.endswith((".part", ".partial")) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                total = hashlib.sha256()
                for block in iter(lambda: file.read(1 << 20), b""):
                    total.update(block)
            lines.append(f"{total.hexdigest()}  {relative}\n")
    place = os.path.join(folder, MANIFEST)
    with open(place + ".part", "w", encoding="utf-8") as file:
        file.writelines(lines)
    os.replace(place + ".part", place)
    return len(lines)

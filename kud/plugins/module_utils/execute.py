"""Runs programs on a host."""

from __future__ import annotations

import subprocess


def execute(argv, data=None):
    """Runs a program, which may read the text, and returns its status, what it printed and what it complained of.

    Ansible's own run_command loses what a program prints that ends between two looks at it: it looks for output for a whole second, and, when there was
    none, asks whether the program has ended. A ping of three packets ends in that moment, after two seconds, as often as the host is busy.
    """
    try:
        done = subprocess.run(argv, input=data or "", check=False, capture_output=True, text=True, errors="replace")
    except OSError as e:
        return 127, "", f"{argv[0]}: {e.strerror}"
    return done.returncode, done.stdout, done.stderr

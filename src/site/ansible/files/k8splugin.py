# What happens in a run of ansible-playbook, as JSON, one event a line. Of a result
# only a few words leave: the rest may hold anything.
from __future__ import annotations

import json
import os
import signal
import sys
import threading

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: k8splugin
type: stdout
short_description: events for the service that runs the playbook
description: Prints one JSON object for each event, and ends the run when the service is gone.
"""

LONGEST = 3000


def leash():
    """The service holds the other end of standard input: when it dies, so does the run."""
    try:
        while os.read(0, 4096):
            pass
    except OSError:
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "k8splugin"

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.play = ""
        if os.environ.get("K8SPLUGIN_LEASH") == "1":
            threading.Thread(target=leash, daemon=True).start()

    def tell(self, kind, task=None, host=None, message=""):
        event = {"event": kind, "play": self.play, "message": str(message)[:LONGEST]}
        if task is not None:
            event["task"] = task.get_name()
        if host is not None:
            event["host"] = host if isinstance(host, str) else host.get_name()
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()

    def about(self, result):
        """What a result says in words; nothing of one that must not be shown."""
        found = result._result
        if result._task.no_log or found.get("_ansible_no_log"):
            return "hidden: the task has no_log"
        words = [found.get(name) for name in ("msg", "stderr", "module_stderr", "reason")]
        return ": ".join(w.strip() for w in words if isinstance(w, str) and w.strip())

    def v2_playbook_on_play_start(self, play):
        self.play = play.get_name().strip()
        self.tell("play")

    def v2_playbook_on_task_start(self, task, is_conditional):
        self.tell("task", task)

    def v2_playbook_on_handler_task_start(self, task):
        self.tell("task", task)

    def v2_runner_on_ok(self, result):
        kind = "changed" if result._result.get("changed") else "ok"
        message = ""
        if result._task.action in ("ansible.builtin.debug", "debug", "ansible.builtin.assert", "assert"):
            message = self.about(result)
        self.tell(kind, result._task, result._host, message)

    def v2_runner_on_skipped(self, result):
        self.tell("skipped", result._task, result._host)

    def v2_runner_retry(self, result):
        self.tell("retry", result._task, result._host, self.about(result))

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.tell("ignored" if ignore_errors else "failed", result._task, result._host, self.failed(result))

    def failed(self, result):
        """Of a loop, what its failed items say."""
        items = [i for i in result._result.get("results") or [] if isinstance(i, dict) and i.get("failed")]
        if not items or result._task.no_log:
            return self.about(result)
        said = []
        for item in items:
            if item.get("_ansible_no_log"):
                return "hidden: the task has no_log"
            said.append(str(item.get("msg", "")))
        return "; ".join(said)

    def v2_runner_on_unreachable(self, result):
        self.tell("unreachable", result._task, result._host, self.about(result))

    def v2_playbook_on_no_hosts_matched(self):
        self.tell("note", message="no host matched")

    def v2_playbook_on_stats(self, stats):
        for host in sorted(stats.processed):
            sums = stats.summarize(host)
            text = " ".join("%s=%d" % (name, sums[name]) for name in sorted(sums))
            self.tell("stats", host=host, message=text)

#!/usr/bin/env python3
"""Receives the webhooks of VNF packages that k8splugin sends.

It prints each body that is signed with the secret, as one line of JSON. A request
without a valid signature, or one that is older than five minutes, is refused. A
request that is repeated is printed once.

    receiver.py --secret-file secret --certificate tls.crt --key tls.key
"""

import argparse
import collections
import hashlib
import hmac
import http.server
import json
import ssl
import threading
import time

LIMIT = 1 << 20  # bytes of a request
OLDEST = 300  # seconds
REMEMBERED = 10_000  # deliveries


class Receiver(http.server.BaseHTTPRequestHandler):
    secret = b""
    lock = threading.Lock()
    delivered = collections.OrderedDict()

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > LIMIT:
            self.send_error(413)
            return
        body = self.rfile.read(length)
        sent = self.headers.get("X-K8splugin-Timestamp", "")
        own = "sha256=" + hmac.new(self.secret, sent.encode() + b"." + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(own, self.headers.get("X-K8splugin-Signature", "")) or abs(time.time() - int(sent)) > OLDEST:
            self.send_error(401)
            return
        with self.lock:
            delivery = self.headers.get("X-K8splugin-Delivery", "")
            if delivery not in self.delivered:
                print(json.dumps(json.loads(body)), flush=True)
            self.delivered[delivery] = True
            while len(self.delivered) > REMEMBERED:
                self.delivered.popitem(last=False)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--listen", default="127.0.0.1:8443", help="address and port")
    flags.add_argument("--secret-file", required=True, help="file with the secret, which is webhook_secret in requests")
    flags.add_argument("--certificate", help="PEM certificate; without it, requests are not encrypted")
    flags.add_argument("--key", help="PEM private key of the certificate")
    args = flags.parse_args()
    host, _, port = args.listen.rpartition(":")
    with open(args.secret_file, "rb") as file:
        Receiver.secret = file.read().strip()
    server = http.server.ThreadingHTTPServer((host, int(port)), Receiver)
    if args.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(args.certificate, args.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

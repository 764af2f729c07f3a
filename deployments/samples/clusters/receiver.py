#!/usr/bin/env python3
"""Receives the kubeconfigs of cloud regions that k8splugin hands over.

It writes each to FOLDER/<cloud_region_id>.kubeconfig, readable by its user only.

    receiver.py --folder kubeconfigs --certificate tls.crt --key tls.key
"""

import argparse
import base64
import http.server
import json
import os
import re
import ssl

LIMIT = 1 << 20  # bytes of a request


class Receiver(http.server.BaseHTTPRequestHandler):
    folder = "."

    def do_POST(self):
        try:
            length = int(self.headers["Content-Length"])
            if length > LIMIT:
                raise ValueError("the request is too large")
            handed = json.loads(self.rfile.read(length))
            region = handed["cloud_region_id"]
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", region):
                raise ValueError("the id of the region is wrong")
            kubeconfig = base64.b64decode(handed["kubeconfig"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            self.send_error(400, str(error))
            return
        target = os.path.join(self.folder, region + ".kubeconfig")
        with open(os.open(target + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(kubeconfig)
        os.replace(target + ".new", target)
        self.send_response(204)
        self.end_headers()


def main():
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--listen", default="127.0.0.1:8443", help="address and port")
    flags.add_argument("--folder", default=".", help="folder of the kubeconfigs")
    flags.add_argument("--certificate", help="PEM certificate; without it, requests are not encrypted")
    flags.add_argument("--key", help="PEM private key of the certificate")
    args = flags.parse_args()
    host, _, port = args.listen.rpartition(":")
    Receiver.folder = args.folder
    os.makedirs(args.folder, mode=0o700, exist_ok=True)
    server = http.server.ThreadingHTTPServer((host, int(port)), Receiver)
    if args.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(args.certificate, args.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

"""An object store with Object Lock and KMS keys: moto, a third-party fake of AWS.

It prints the address it listens on at 127.0.0.1 and the id of a key, as JSON, and ends when
its standard input is closed. There are two buckets: `plain`, and `locked` with Object Lock.

moto checks whether an object exists and then creates it, so that two concurrent requests could
both create it. A real object store lets one of them win, so this server handles one request at
a time.
"""

import json
import logging
import sys
import threading

import boto3
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server


class InTurn(DomainDispatcherApplication):
    turn = threading.Lock()

    def __call__(self, environ, start_response):
        with self.turn:
            return super().__call__(environ, start_response)


logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server(
    "127.0.0.1", 0, InTurn(create_backend_app), threaded=True, request_handler=MotoRequestHandler
)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
settings = {
    "endpoint_url": url,
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}
store = boto3.client("s3", **settings)
store.create_bucket(Bucket="plain")
store.create_bucket(Bucket="locked", ObjectLockEnabledForBucket=True)
key = boto3.client("kms", **settings).create_key()["KeyMetadata"]["KeyId"]
print(json.dumps({"url": url, "kms_key": key}), flush=True)
sys.stdin.read()
server.shutdown()

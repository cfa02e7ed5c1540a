"""An object store with Object Lock, and keys of KMS: moto, which others have made.

It prints where it listens at 127.0.0.1, and the id of a key, as JSON; it ends when its
standard input does. There are two buckets: `plain`, and `locked` with Object Lock.
"""

import json
import logging
import sys

import boto3
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
url = f"http://{host}:{port}"
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
server.stop()

"""A use of the Python client, which lint runs: a request is encoded, and a response decoded, without a server. It takes swagger.yaml in JSON."""

import json
import sys

from openapi_client import ApiClient, Configuration, VnfInstanceCreate, VnfInstancesApi


with open(sys.argv[1], encoding="utf-8") as document:
    example = json.load(document)["components"]["examples"]["VnfInstance"]["value"]


class Response:
    """The document's example of an instance."""

    status = 200
    reason = "OK"
    data = json.dumps(example).encode()

    def getheaders(self):
        return {}

    def getheader(self, _name, default=None):
        return default


class Rest:
    """In the place of the client's HTTP."""

    def GET(self, url, query_params=None, headers=None, **_options):
        assert (url, query_params, headers["Authorization"]) == ("/v1/vnf_instances/a1", [], "Bearer t")
        return Response()


client = ApiClient(Configuration(host=""))
client.configuration.access_token = "t"
client.rest_client = Rest()

create = VnfInstanceCreate(cloud_region_id="east", csar_id="firewall", timeout="10m")
assert client.sanitize_for_serialization(create) == {"cloud_region_id": "east", "csar_id": "firewall", "timeout": "10m"}

instance = VnfInstancesApi(client).get_vnf_instance("a1")
assert (instance.vnf_id, instance.state) == (example["vnf_id"], example["state"]), instance

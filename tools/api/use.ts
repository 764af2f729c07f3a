// A use of the TypeScript client, which lint compiles.
import type { components, paths } from "./api";

export const create: components["schemas"]["VnfInstanceCreate"] = { cloud_region_id: "east", csar_id: "firewall", timeout: "10m" };

type List = paths["/v1/vnf_instances"]["get"]["responses"]["200"]["content"]["application/json"];
export const ids = (list: List): string[] => list.vnf_instances.map((instance) => instance.vnf_id);

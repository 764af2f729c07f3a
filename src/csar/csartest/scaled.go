package csartest

// scaled is a flavor with two VDUs, whose workloads are named web and db, and two levels.
const scaled = `tosca_definitions_version: tosca_simple_yaml_1_2
imports: [types.yaml]
topology_template:
  substitution_mappings:
    node_type: example.VNF
    properties: {flavour_id: simple}
  node_templates:
    VDU1:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: web, vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 3}}
    VDU2:
      type: tosca.nodes.nfv.Vdu.Compute
      properties: {name: db, vdu_profile: {min_number_of_instances: 1, max_number_of_instances: 1}}
  policies:
    - scaling_aspects:
        type: tosca.policies.nfv.ScalingAspects
        properties:
          aspects:
            vdu1_aspect: {name: vdu1_aspect, max_scale_level: 2, step_deltas: [delta_1]}
    - instantiation_levels:
        type: tosca.policies.nfv.InstantiationLevels
        properties:
          levels:
            instantiation_level_1: {description: Smallest size, scale_info: {vdu1_aspect: {scale_level: 0}}}
            instantiation_level_2: {description: Largest size, scale_info: {vdu1_aspect: {scale_level: 2}}}
          default_level: instantiation_level_1
    - vdu1_initial_delta:
        type: tosca.policies.nfv.VduInitialDelta
        properties: {initial_delta: {number_of_instances: 1}}
        targets: [VDU1]
    - vdu1_scaling_aspect_deltas:
        type: tosca.policies.nfv.VduScalingAspectDeltas
        properties: {aspect: vdu1_aspect, deltas: {delta_1: {number_of_instances: 1}}}
        targets: [VDU1]
    - vdu1_instantiation_levels:
        type: tosca.policies.nfv.VduInstantiationLevels
        properties:
          levels:
            instantiation_level_1: {number_of_instances: 1}
            instantiation_level_2: {number_of_instances: 3}
        targets: [VDU1]
`

// Scaled returns the files of a CSAR whose flavor has VDUs, levels and a scaling aspect.
// VDU1 is the workload web with 1 or 3 pods; the levels give VDU2, the workload db, none.
func Scaled(artifacts map[string]string) map[string]string {
	return Described(scaled, artifacts)
}

// Described returns the files of a CSAR with the given file of the flavor simple.
func Described(flavor string, artifacts map[string]string) map[string]string {
	out := Files(artifacts)
	out["Definitions/df_simple.yaml"] = flavor
	delete(out, "sample.mf")
	out["sample.mf"] = Manifest(out)
	return out
}

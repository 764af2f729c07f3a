package native

import (
	"encoding/base64"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

// regionAccess returns the access that a request gives directly or in a
// kubeconfig. It is zero if the request gives neither.
func regionAccess(in *wire.RegionAccess, kubeconfig string) (nf.Access, error) {
	switch {
	case in == nil && kubeconfig == "":
		return nf.Access{}, nil
	case in == nil:
		file, err := decodeKubeconfig(kubeconfig)
		return nf.Access{Kubeconfig: file}, err
	case kubeconfig != "":
		return nf.Access{}, invalid("access", "contradicts kubeconfig")
	}
	access := nf.Access{
		Server: in.Server, ServerName: in.ServerName, CA: content[[]byte](in.CA), Insecure: in.Insecure,
		Token: content[nf.Secret](in.Token), Username: in.Username, Password: content[nf.Secret](in.Password),
		Certificate: content[[]byte](in.Certificate), Key: content[nf.Secret](in.Key),
	}
	if o := in.OIDC; o != nil {
		access.OIDC = &nf.OIDC{
			TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: content[nf.Secret](o.ClientSecret),
			Username: o.Username, Password: content[nf.Secret](o.Password), CA: content[[]byte](o.CA),
		}
	}
	if sa := in.Account; sa != nil {
		access.ServiceAccount = &nf.ServiceAccount{Namespace: sa.Namespace, Name: sa.Name, Audiences: sa.Audiences, Lifetime: sa.Lifetime}
	}
	return access, nil
}

// rotation returns how the credential of an access rotates, or nil.
func rotation(in *wire.RegionCredentials) *nf.Rotation {
	if in == nil {
		return nil
	}
	return &nf.Rotation{Kind: in.Rotate, Lifetime: in.Lifetime}
}

// setAccess sets the access of a region, and how its credential rotates. Without an
// access, the present one rotates.
func setAccess(g *nf.Region, access nf.Access, rotates *nf.Rotation) error {
	switch {
	case !access.IsZero():
		g.Access, g.AAI = access, nil // an access that a request sets does not follow A&AI
	case rotates == nil:
		return nil
	case g.AAI != nil:
		return invalid("credentials", "needs access or kubeconfig: the present access is read from A&AI")
	case g.Parent != nil:
		return invalid("credentials", "needs access or kubeconfig: the present access is read from the Secret of a Cluster")
	}
	g.Access.Rotation = rotates
	return nil
}

// content returns the bytes of a text, or nil if it is empty.
func content[T ~[]byte](text string) T {
	if text == "" {
		return nil
	}
	return T(text)
}

func decodeKubeconfig(text string) (nf.Secret, error) {
	file, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		// The cause contains no content, but even the position of the error in
		// a secret should not be disclosed.
		return nil, invalid("kubeconfig", "is not base64")
	}
	return file, nil
}

package adversary

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
)

// raw are the bytes sent by behaviors that are not valid HTTP.
var raw = map[Behavior]string{
	Banner:    "SSH-2.0-" + Secret + "\r\n",
	Malformed: "HTTP/1.1 200 OK\r\n" + Secret + "\r\n\r\n",
	Trailer:   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + Secret + "\r\n\r\n",
	Phrase:    "HTTP/1.1 502 " + Secret + "\r\nContent-Length: 0\r\n\r\n",
}

// interrupt sends bytes instead of a response, and closes the connection.
func (s *Server) interrupt(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic("behavior " + string(s.behavior) + " needs the protocols of NextProtos")
	}
	s.say(conn, text)
	hangUp(conn)
}

// hangUp closes a connection without the TLS close_notify alert, which would
// wait for the client.
func hangUp(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close() // nothing is left to be sent
}

// NextProtos returns the TLSNextProto for the http.Server that serves s. If it
// is nil, the server offers HTTP/2, as API servers do.
func (s *Server) NextProtos() map[string]func(*http.Server, *tls.Conn, http.Handler) {
	if _, ok := raw[s.behavior]; ok {
		return map[string]func(*http.Server, *tls.Conn, http.Handler){} // HTTP/1
	}
	if s.behavior == Goodbye {
		return map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": s.leave}
	}
	return nil
}

// leave reads a request over HTTP/2 and ends the connection: it sends an empty
// SETTINGS frame and a GOAWAY frame with a protocol error.
func (s *Server) leave(_ *http.Server, conn *tls.Conn, _ http.Handler) {
	defer hangUp(conn)
	s.requests.Add(1)
	if awaitRequest(conn) != nil {
		return // the client has left
	}
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	goAway := "\x00\x00" + string(rune(8+len(Secret))) + "\x07\x00\x00\x00\x00\x00" + "\x7f\xff\xff\xff" + "\x00\x00\x00\x01" + Secret
	s.say(conn, settings+goAway)
}

// awaitRequest reads the frames of an HTTP/2 client up to its first request.
func awaitRequest(conn io.Reader) error {
	const preface, headers = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1
	_, err := io.CopyN(io.Discard, conn, int64(len(preface)))
	for kind := byte(0); err == nil && kind != headers; {
		var head [9]byte // length, kind, flags, stream
		if _, err = io.ReadFull(conn, head[:]); err == nil {
			kind = head[3]
			_, err = io.CopyN(io.Discard, conn, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
		}
	}
	return err
}

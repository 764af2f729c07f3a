package etcd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
)

// The format of a bbolt file, version 2. Each page begins with a header. The first
// two pages are copies of the meta page, the others form a tree for each bucket.
// Numbers have the machine's byte order.
const (
	pageHeader   = 16 // id 8, flags 2, count 2, overflow 4
	pageElement  = 16 // of a branch: pos 4, ksize 4, child 8; of a leaf: flags 4, pos 4, ksize 4, vsize 4
	bucketHeader = 16 // root 8, sequence 8
	metaSize     = 64

	branchPage = 0x01
	leafPage   = 0x02
	bucketLeaf = 0x01

	boltMagic   = 0xED0CDAED
	boltVersion = 2

	maxPageSize = 64 << 20 // with its overflow pages: many times the largest value
)

// tree reads a bbolt file without trusting it. bbolt itself checks its file in
// separate goroutines, where a damaged page ends the process.
type tree struct {
	file     io.ReaderAt
	pageSize int64
	seen     []bool // by page number: the page was read
	visit    func(bucket string, key, value []byte) error
}

// walkTree calls visit for each record in each bucket of a bbolt file, in order. It
// returns an error if the structure of a page is damaged; pages have no checksums.
// Keys and values are valid until visit returns.
func walkTree(file io.ReaderAt, size int64, visit func(bucket string, key, value []byte) error) error {
	m, err := readMeta(file)
	if err != nil {
		return err
	}
	if m.pages > uint64(size/m.pageSize) {
		return fmt.Errorf("it has %d bytes instead of at least %d", size, int64(m.pages)*m.pageSize)
	}
	t := &tree{file: file, pageSize: m.pageSize, seen: make([]bool, m.pages), visit: visit}
	return t.bucket("", m.root)
}

type meta struct {
	pageSize           int64
	root, pages, write uint64
}

// readMeta returns the newer of the valid meta pages. The second one begins after
// one page, and only the meta pages contain the page size.
func readMeta(file io.ReaderAt) (meta, error) {
	var best meta
	for at := int64(0); at <= 1<<24; at = max(1<<10, at*2) {
		var b [pageHeader + metaSize]byte
		if _, err := file.ReadAt(b[:], at); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return meta{}, err
		}
		m, ok := parseMeta(b[pageHeader:])
		if ok && (at == 0 || at == m.pageSize) && m.write >= best.write {
			best = m
		}
	}
	if best.pageSize == 0 {
		return meta{}, errors.New("it lacks a valid meta page")
	}
	return best, nil
}

func parseMeta(b []byte) (meta, bool) {
	order := binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8]) // never fails
	m := meta{pageSize: int64(order.Uint32(b[8:])), root: order.Uint64(b[16:]), pages: order.Uint64(b[40:]), write: order.Uint64(b[48:])}
	ok := order.Uint32(b) == boltMagic && order.Uint32(b[4:]) == boltVersion && order.Uint64(b[metaSize-8:]) == sum.Sum64()
	return m, ok && m.pageSize >= 1<<10
}

// bucket walks the tree of a bucket.
func (t *tree) bucket(name string, root uint64) error {
	p, err := t.read(root)
	if err != nil {
		return err
	}
	return t.walk(name, p, nil, nil)
}

// read returns a page with its overflow pages. It reads each page once, so a walk
// ends even if pages refer to each other in a cycle.
func (t *tree) read(id uint64) ([]byte, error) {
	if id < 2 || id >= uint64(len(t.seen)) {
		return nil, fmt.Errorf("page %d does not exist", id)
	}
	p := make([]byte, t.pageSize)
	if _, err := t.file.ReadAt(p, int64(id)*t.pageSize); err != nil {
		return nil, err
	}
	more := uint64(binary.NativeEndian.Uint32(p[12:]))
	if binary.NativeEndian.Uint64(p) != id || id+more >= uint64(len(t.seen)) || more*uint64(t.pageSize) > maxPageSize {
		return nil, fmt.Errorf("page %d is damaged", id)
	}
	for i := id; i <= id+more; i++ {
		if t.seen[i] {
			return nil, fmt.Errorf("page %d is used twice", i)
		}
		t.seen[i] = true
	}
	if more == 0 {
		return p, nil
	}
	p = slices.Grow(p, int(more)*int(t.pageSize))[:int(1+more)*int(t.pageSize)]
	_, err := t.file.ReadAt(p[t.pageSize:], int64(id+1)*t.pageSize)
	return p, err
}

// walk walks the subtree of a page. Its keys must be at least low and less than
// high, unless high is nil.
func (t *tree) walk(bucket string, p, low, high []byte) error {
	elements, err := parsePage(p)
	if err != nil {
		return fmt.Errorf("a page of bucket %q is damaged: %w", bucket, err)
	}
	for i, e := range elements {
		if bytes.Compare(e.key, low) < 0 || high != nil && bytes.Compare(e.key, high) >= 0 || i > 0 && bytes.Compare(e.key, elements[i-1].key) <= 0 {
			return fmt.Errorf("a page of bucket %q is damaged: its keys are not in order", bucket)
		}
		end := high
		if i+1 < len(elements) {
			end = elements[i+1].key
		}
		if err := t.element(bucket, e, end); err != nil {
			return err
		}
	}
	return nil
}

// element visits a record, or walks the subtree of a child page or bucket.
func (t *tree) element(bucket string, e element, high []byte) error {
	switch {
	case e.child != 0:
		p, err := t.read(e.child)
		if err != nil {
			return err
		}
		return t.walk(bucket, p, e.key, high)
	case !e.bucket:
		return t.visit(bucket, e.key, e.value)
	case len(e.value) < bucketHeader:
		return fmt.Errorf("bucket %q is damaged", e.key)
	}
	root := binary.NativeEndian.Uint64(e.value)
	if root != 0 {
		return t.bucket(string(e.key), root)
	}
	if len(e.value) < bucketHeader+pageHeader {
		return fmt.Errorf("bucket %q is damaged", e.key)
	}
	return t.walk(string(e.key), e.value[bucketHeader:], nil, nil) // a small bucket is stored inline
}

// element is an entry of a page: a child page, a record or a bucket.
type element struct {
	key, value []byte
	child      uint64
	bucket     bool
}

// parsePage returns the elements of a page. Keys and values follow the elements
// without gaps.
func parsePage(p []byte) ([]element, error) {
	order := binary.NativeEndian
	flags, count := order.Uint16(p[8:]), int(order.Uint16(p[10:]))
	next := pageHeader + count*pageElement
	if next > len(p) || flags != branchPage && flags != leafPage || flags == branchPage && count == 0 {
		return nil, errors.New("its header is wrong")
	}
	elements := make([]element, count)
	for i := range elements {
		at := pageHeader + i*pageElement
		b := p[at : at+pageElement]
		e, pos, key, value := &elements[i], order.Uint32(b), int(order.Uint32(b[4:])), 0
		if flags == branchPage {
			e.child = order.Uint64(b[8:])
		} else {
			e.bucket = order.Uint32(b) == bucketLeaf
			pos, key, value = order.Uint32(b[4:]), int(order.Uint32(b[8:])), int(order.Uint32(b[12:]))
		}
		if at+int(pos) != next || key == 0 || next+key+value > len(p) || flags == branchPage && e.child == 0 || flags == leafPage && order.Uint32(b) > bucketLeaf {
			return nil, fmt.Errorf("element %d is wrong", i)
		}
		e.key, e.value = p[next:next+key], p[next+key:next+key+value]
		next += key + value
	}
	return elements, nil
}

// Package operation is the kernel that runs durable operations, of every kind.
//
// An operation changes one subject, such as a VNF instance or a site. A kind
// brings what only it knows (Kind, Work, Sweep): where its subject has its lock, the
// steps, how they are undone, and what an error may show. Everything else is
// here: accepting a request, the list of work that replicas share, the record of
// the steps, deadlines, cancellation, waiting for something that is away, the log and
// its followers, retention, and the removal of stale records.
//
// The parts, each of which calls only those below it:
//
//   - Acceptor: a request under an idempotency key is accepted once. Its records
//     have no effect before the subject names the operation.
//   - Workers: which replica runs which operation. A claim exists from before the
//     operation's record until after its end. A replica is alive while it renews
//     its lease (package lease). When it has died, the others claim its operations
//     and resume them. One of their chores is the collector: every ten minutes it
//     reads the store once, for stale records and expired operations of all kinds.
//   - Attempt: one replica's attempt to run an operation. Its claim has a fencing
//     token, which is in the operation and its subject, and every write compares
//     it: a replica whose claim was taken over can write neither.
//   - Locks: the records of a kind's subjects. Each names the operation that changes
//     it; a kind only says where.
//   - Ledger: the operations with their changes and logs, by id and by subject, and
//     their followers.
//
// The package does not know a verb, render anything, or reach a region. It has no
// graph of steps: steps run in sequence, and each is idempotent.
package operation

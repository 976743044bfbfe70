// Which members of the group a replica reaches, from what it says of itself.
//
// Invariant: a replica that reaches no majority has no leader, whatever it still takes for one: a
// leader whose peers are gone does not give up its ballot by itself.

/** The members that this replica reaches, itself included. */
export function reached({ members, connected, replica }) {
  return members.filter((member) => member === replica || connected.includes(member));
}

export function hasMajority(cluster) {
  return reached(cluster).length * 2 > cluster.members.length;
}

/** How many entries of its log a replica has yet to apply. */
export function behind(cluster) {
  return BigInt(cluster.log_decided) - BigInt(cluster.log_applied);
}

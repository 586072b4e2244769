// Clean-up beside other work: rows that somebody has locked are left to the next one, so that one row keeps neither the others
// nor what cleans up on its way (architecture §11, I97).

/** Part of a statement: deletes the rows of `table` that `condition` is true of and that nobody has locked. */
export function deleteFree(table: string, condition: string): string {
  return `DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM ${table} WHERE ${condition} FOR UPDATE SKIP LOCKED))`;
}

/** The same of rows whose time is over by the database's clock. */
export function deleteExpired(table: string): string {
  return deleteFree(table, 'expires_at_ms <= openwop_now_ms()');
}

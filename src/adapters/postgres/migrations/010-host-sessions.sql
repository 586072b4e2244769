-- Who may see the host's pages (architecture §10): one-time links that sign in, and the sessions that they or the key
-- open, by hash only. Tables of their own: those of one run stay as the release before reads them.

CREATE TABLE host_links (
  link_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX host_links_expiry ON host_links (expires_at_ms);

CREATE TABLE host_sessions (
  session_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX host_sessions_expiry ON host_sessions (expires_at_ms);

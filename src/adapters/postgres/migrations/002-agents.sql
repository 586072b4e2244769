-- Agents as processes (seed 004; architecture §5): what every process of a deployment must see of them. Views and tools
-- are JSON text in the form of the port's types; nothing here holds content or a token.

CREATE TABLE agent_tools (
  tenant_id text NOT NULL,
  tool_id text NOT NULL,
  agent_id text NOT NULL,
  tool text NOT NULL,
  PRIMARY KEY (tenant_id, tool_id)
);
CREATE INDEX agent_tools_of_agent ON agent_tools (tenant_id, agent_id);

-- One agent in one Core; a row whose lease is over belongs to a Core that died.
CREATE TABLE agent_instances (
  tenant_id text NOT NULL,
  agent_id text NOT NULL,
  instance_id text NOT NULL,
  lease_until_ms bigint NOT NULL,
  instance text NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, instance_id)
);
CREATE INDEX agent_instances_of_core ON agent_instances (instance_id);
CREATE INDEX agent_instances_expiry ON agent_instances (lease_until_ms);

-- The tenant's row is the lock of its audit: positions are given in the order of commits, so that a reader who pages
-- misses none, and the number of rows kept follows from the position alone.
CREATE TABLE agent_audit_heads (
  tenant_id text PRIMARY KEY,
  last_position bigint NOT NULL
);

CREATE TABLE agent_audit (
  tenant_id text NOT NULL,
  position bigint NOT NULL,
  at_ms bigint NOT NULL,
  instance_id text NOT NULL,
  agent_id text,
  session_id text,
  kind text NOT NULL,
  details text NOT NULL,
  PRIMARY KEY (tenant_id, position)
);
CREATE INDEX agent_audit_of_agent ON agent_audit (tenant_id, agent_id, position);
CREATE INDEX agent_audit_age ON agent_audit (at_ms);

CREATE TABLE agent_tokens (
  token_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  agent_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX agent_tokens_expiry ON agent_tokens (expires_at_ms);

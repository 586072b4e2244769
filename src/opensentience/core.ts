// Core of one worker (seed 004; design §5): joins the server that speaks the protocol, the gate that admits, the
// supervisor that runs processes and the registry that every process of the deployment reads.
import type { Redactor } from '../core/redaction.ts';
import type { AgentRegistry, Logger } from '../ports.ts';
import type { Core, ProtocolLimits } from './parts.ts';
import type { ProcessLimits } from './process-limits.ts';

export interface CoreOptions {
  /** Holds a folder per agent, each with opensentience.agent.json. */
  readonly agentsDir: string;
  /** Made with mode 0700. Where its path is too long for a Unix socket a fresh folder in os.tmpdir() is used. */
  readonly socketDir: string;
  readonly dataDir: string;
  readonly tenant: string;
  readonly registry: AgentRegistry;
  readonly redactor: Redactor;
  readonly logger: Logger;
  readonly coreVersion: string;
  readonly instanceId: string;
  /** Core's own environment: agents get the variables of it that their manifests name. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absent: no loopback TCP. 0 takes a free port. */
  readonly tcpPort?: number;
  readonly limits?: Partial<ProtocolLimits>;
  readonly processLimits?: Partial<ProcessLimits>;
}

/** Reads the manifests, listens, ends what a former Core left running, and starts the agents. */
export async function createCore(options: CoreOptions): Promise<Core> {
  throw new Error(`not joined yet: ${options.instanceId}`);
}

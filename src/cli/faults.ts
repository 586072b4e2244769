// How a command ends that did not do what it was asked: what a person can act upon, and the exit code for programs.

export const EXIT = {
  done: 0,
  /** The host or the network said no, the run that was followed failed, or two runs differ. */
  refused: 1,
  /** The command was not understood, or wants more said. */
  usage: 2,
  /** `runs follow --until-question`: a human is asked. */
  waits: 3,
  /** The run that was followed was cancelled. */
  cancelled: 4,
  /** Ctrl-C. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export interface FaultFacts {
  /** The host's code, or one of this program: host_unreachable, not_a_host, bad_url, bad_key, usage, interrupted. */
  readonly code: string;
  readonly exitCode?: ExitCode;
  /** HTTP status and details, where the host answered. */
  readonly status?: number;
  readonly details?: Readonly<Record<string, unknown>>;
  /** What a program needs to go on. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** The host was not reached, or its answer did not arrive: asking again may help. */
  readonly isLost?: true;
  readonly cause?: unknown;
}

/** Its message is the whole of what is printed. */
export class CliFault extends Error {
  override readonly name = 'CliFault';
  readonly facts: FaultFacts;

  constructor(message: string, facts: FaultFacts) {
    super(message, { cause: facts.cause });
    this.facts = facts;
  }

  get code(): string {
    return this.facts.code;
  }

  get exitCode(): ExitCode {
    return this.facts.exitCode ?? EXIT.refused;
  }
}

export function usageFault(message: string): CliFault {
  return new CliFault(message, { code: 'usage', exitCode: EXIT.usage });
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof CliFault ? error.code : undefined;
}

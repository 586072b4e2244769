// The command line `openwop`: arguments in, text out, an exit code. Knows only the host's HTTP API.
import { Command, CommanderError } from 'commander';
import { addAgentCommands } from './agent-commands.ts';
import { CliFault, createHostClient, type HostAddress } from './host-client.ts';
import { printable } from '../words/printable.ts';

const FAILED = 1;
const USAGE = 2;

const ENVIRONMENT = `
Environment:
  OPENWOP_URL       where the host is; when absent OPENWOP_PORT of this machine, else where the host of the
                    data folder listened last, else http://127.0.0.1:8787
  OPENWOP_API_KEY   its key; when absent the one kept in the data folder of \`npm start\`
  OPENWOP_DATA_DIR  that folder; .data when absent

Exit codes: 0 done, 1 the host or the network said no, 2 the command was not understood.`;

export interface CliParts extends HostAddress {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Resolves to the exit code; everything that a person can act upon was printed. */
export async function runCli(args: readonly string[], parts: CliParts): Promise<number> {
  const program = new Command('openwop')
    .description('Looks at an OpenWOP host, and lets agents attach to it.')
    .exitOverride()
    .configureOutput({ writeOut: parts.out, writeErr: parts.err })
    .showHelpAfterError('(add --help for what can be said)')
    .addHelpText('after', ENVIRONMENT);
  addAgentCommands(program, {
    client: createHostClient(parts),
    say: (text) => parts.out(`${text}\n`),
  });
  try {
    if (!URL.canParse(parts.url) || !/^https?:$/.test(new URL(parts.url).protocol))
      throw new CliFault('OPENWOP_URL must be a URL that begins with http:// or https://.');
    await program.parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    if (!(error instanceof CliFault)) throw error;
    parts.err(`openwop: ${printable(error.message)}\n`);
    return FAILED;
  }
}

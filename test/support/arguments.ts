// The arguments of `npm run campaign` and `npm run bench`. What is wrong with them is a sentence and exit code 2, never a stack
// trace and never a green run of something else.
import { parseArgs, type ParseArgsConfig } from 'node:util';

type Read<T extends ParseArgsConfig> = ReturnType<typeof parseArgs<T>>;

/** As parseArgs reads them, or what is wrong. */
export function readArguments<T extends ParseArgsConfig>(config: T): Read<T> | { fault: string } {
  try {
    return parseArgs(config);
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    if (!code.startsWith('ERR_PARSE_ARGS_')) throw error;
    // Advice about dashes follows, of no use to these commands.
    const [said = message] = message.split(/[.,]? *\s+To specify /);
    const fault = said.replaceAll('\n', ' ').replace(/(?<![.?])$/, '.');
    return { fault: `${fault} --help shows the usage.` };
  }
}

/** What is wrong with the text of a number of 0 or more. */
export function faultOfNumber(text: string, { isWhole }: { isWhole: boolean }): string | undefined {
  const pattern = isWhole ? /^\d{1,15}$/ : /^\d{1,15}(\.\d+)?$/;
  if (pattern.test(text)) return undefined;
  return `a ${isWhole ? 'whole ' : ''}number of 0 or more, not "${text}".`;
}

/** Ends the program. */
export function refuse(fault: string): never {
  console.error(fault);
  process.exit(2);
}

/** This program's arguments. With `--help` it prints the usage and ends, which is no failure. */
export function takeArguments<T extends ParseArgsConfig>(config: T, usage: string): Read<T> {
  const read = readArguments(config);
  if ('fault' in read) return refuse(read.fault);
  if (!(read.values as { help?: boolean }).help) return read;
  console.log(usage);
  process.exit(0);
}

// `openwop import FILE` in a process of its own, which is given no key and asks nobody: prints one line, a ReplayReport as
// JSON.
import { readConfig } from './config.ts';
import { replayFile } from './replay-file.ts';

const report = await replayFile(process.argv[2] ?? '', readConfig(process.env).cacheDir);
process.stdout.write(`${JSON.stringify(report)}\n`);

// A Core in a process of its own, for tests that kill it: its argument is the root, and it prints a line when it runs.
import { startCore } from './core-parts.ts';

const [root = ''] = process.argv.slice(2);
await startCore(root);
console.log('running');

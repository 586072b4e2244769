#!/usr/bin/env node
// `npx openwop`, and whatever calls the command line from another folder than the checkout.
import process from 'node:process';

process.argv.splice(2, 0, 'openwop');
await import('./launch.js');

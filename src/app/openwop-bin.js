#!/usr/bin/env node
// `npx openwop`, and whatever calls the command line from another folder than the checkout: TypeScript without a build.
import { register } from 'tsx/esm/api';

register();
await import('./openwop.ts');

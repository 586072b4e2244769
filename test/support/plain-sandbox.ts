// Lets plain Node import workflow code: what Temporal's sandbox puts into the global scope. To be imported first.
import { AsyncLocalStorage } from 'node:async_hooks';

const rootScope = { cancellable: true, consideredCancelled: false };
Object.assign(globalThis, { AsyncLocalStorage, __TEMPORAL_ACTIVATOR__: { rootScope } });

// The SDK's failure converter with messages and stack traces inside the encoded part (architecture §7, encryption).
// Plain CommonJS, because the SDK loads it by `require` in the main thread and by its bundler in the sandbox.
/* eslint-disable @typescript-eslint/no-require-imports, no-undef -- CommonJS, see above */
'use strict';
const { DefaultFailureConverter } = require('@temporalio/common');

exports.failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });

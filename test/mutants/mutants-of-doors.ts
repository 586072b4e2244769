// Mutants of what keeps others out (architecture §11, I58, I59, I107 to I110): rows of mutants.ts.
import type { Row } from './mutants.ts';

const LOADER = 'src/system/typescript.js';
const LAUNCH = 'src/app/launch.js';
const CACHE = 'src/app/cache-folder.js';
const OF_LOADER = 'test/app/loader-cache.test.ts';
const OF_LAUNCH = 'test/app/launch.test.ts';
const OF_WRONG_KEYS = 'test/facade/wrong-keys.test.ts';
const OF_STRANGERS = 'test/facade/without-key.test.ts';
const OF_STREAMS = 'test/facade/page-streams.test.ts';
const REGISTRY = 'src/facade/stream-registry.ts';
const OF_CACHE = 'test/app/cache-folder.test.ts';

export const OF_DOORS: readonly Row[] = [
  [
    58,
    [
      'src/adapters/postgres/page-session-store.ts',
      'DELETE FROM host_links WHERE link_hash = $1 AND expires_at_ms > ${NOW_MS} RETURNING tenant_id',
      'SELECT tenant_id FROM host_links WHERE link_hash = $1 AND expires_at_ms > ${NOW_MS}',
    ],
    ['test/adapters/postgres-stores.test.ts', 'a link that signs in does so once'],
  ],
  [
    59,
    ['src/app/environment.ts', 'this.fileSecrets.push({ id: name, value: read.value });', ''],
    ['test/app/config.test.ts', 'a key in a file that its user alone may read'],
  ],
  [107, [LOADER, "TSX_DISABLE_CACHE = '1'", "TSX_DISABLE_CACHE = ''"], [OF_LOADER, 'by no script']],
  [
    107,
    ['src/opensentience/process/launch.ts', "TSX_DISABLE_CACHE: '1'", "TSX_DISABLE_CACHE: ''"],
    [OF_LOADER, 'starts with a command of its own'],
  ],
  [
    107,
    ['src/adapters/postgres/pglite.ts', "TSX_DISABLE_CACHE = '1'", "TSX_DISABLE_CACHE = ''"],
    [OF_LOADER, 'by no thread of the database'],
  ],
  [
    107,
    [
      'src/adapters/temporal/bundle.ts',
      "['--import', TYPESCRIPT, BUNDLER]",
      "['--import', 'tsx', BUNDLER]",
    ],
    [OF_LOADER, 'by no bundler'],
  ],
  [107, [LAUNCH, '  openCacheFolder(folder);\n', ''], [OF_LAUNCH, 'is refused in a sentence']],
  [107, [LAUNCH, 'umask(0o077)', 'umask(0)'], [OF_LAUNCH, 'for its user alone']],
  [107, [CACHE, 'mode: 0o700', 'mode: 0o755'], [OF_CACHE, 'is made for its user alone']],
  [
    107,
    [CACHE, 'if (isAbove && (state.mode & STICKY)', 'if ((state.mode & STICKY)'],
    [OF_CACHE, 'though not take'],
  ],
  [
    107,
    [CACHE, '(mode & OTHERS_WRITE) !== 0', 'false'],
    [OF_CACHE, 'is refused where everybody may write'],
  ],
  [
    107,
    [CACHE, 'if (!isTrusted(state.uid, user) && !isSystem) return', 'if (false) return'],
    [OF_CACHE, 'belongs to somebody else'],
  ],
  [
    107,
    [CACHE, '} else if (!isTrusted(state.uid, user))', '} else if (false)'],
    [OF_CACHE, 'somebody else’s link'],
  ],
  [107, [CACHE, ' ?? faultWithin(folder, user)', ''], [OF_CACHE, 'has put something there']],
  [
    107,
    [LOADER, 'process.env.TSX_TSCONFIG_PATH ??=', 'void'],
    [OF_LOADER, 'by a program that the loader runs'],
  ],
  [
    107,
    ['src/adapters/temporal/bundle-config.ts', 'extensionAlias: {}', ''],
    [OF_LOADER, 'nor do they change what it makes'],
  ],
  [
    108,
    [
      'src/facade/listen.ts',
      'if (answers === 0 && socket.writableLength === 0) socket.destroy();',
      '',
    ],
    [OF_STRANGERS, 'an idle one makes room'],
  ],
  [
    107,
    ['src/adapters/temporal/bundle-config.ts', "target: 'web',", ''],
    [OF_LOADER, 'nor do they change what it makes'],
  ],
  [
    108,
    [
      'src/facade/auth.ts',
      'if (match && matches) return caller;',
      'if (match && matches && Number(request.ip?.length) < 0) return caller;',
    ],
    [OF_WRONG_KEYS, 'the right one is taken at any time'],
  ],
  [
    108,
    [
      'src/facade/pages/sign-in.ts',
      'readForm(request, response, FORM_BYTES)',
      'readForm(request, response)',
    ],
    [OF_STRANGERS, 'is small, and refused before it is read'],
  ],
  [
    108,
    [
      'src/facade/body.ts',
      "if (Number(request.headers['content-length'] ?? 0) > limit)",
      'if (limit < 0)',
    ],
    [OF_STRANGERS, 'is small, and refused before it is read'],
  ],
  [
    108,
    ['src/facade/listen.ts', 'server.maxConnections = maxConnections;', ''],
    [OF_STRANGERS, 'connections are as many as there may be'],
  ],
  [
    108,
    ['src/facade/headers.ts', 'hostsIn(request.rawHeaders) > 1', 'hostsIn([]) > 1'],
    [OF_STRANGERS, 'two Host headers are 400'],
  ],
  [
    109,
    [
      'src/facade/routes/page-link.ts',
      '  streams.cut(principals);\n',
      '  void [streams, principals];\n',
    ],
    [OF_STREAMS, 'are cut at once'],
  ],
  [
    109,
    [
      'src/adapters/postgres/page-session-store.ts',
      'DELETE FROM page_sessions WHERE tenant_id = $1 AND run_id = $2',
      'DELETE FROM page_sessions WHERE tenant_id = $1 AND run_id = $2 AND false',
    ],
    [OF_STREAMS, 'links and sessions of the run end'],
  ],
  [
    109,
    [
      'src/adapters/postgres/page-session-store.ts',
      'DELETE FROM page_links WHERE tenant_id = $1 AND run_id = $2',
      'DELETE FROM page_links WHERE tenant_id = $1 AND run_id = $2 AND false',
    ],
    ['test/adapters/postgres-stores.test.ts', 'are revoked, and no others'],
  ],
  [
    109,
    [
      'src/facade/mount.ts',
      "if (codeOf(error) === 'unauthenticated') response.destroy();",
      'void error;',
    ],
    [OF_STREAMS, 'that another process sends'],
  ],
  [
    110,
    [REGISTRY, 'isOfPages(subject) ? perSession : perKey', 'perKey'],
    [OF_STREAMS, 'a session of pages opens few'],
  ],
  [
    110,
    [REGISTRY, 'countOf(isOfPages) >= sessions', 'countOf(isOfPages) >= total'],
    [OF_STREAMS, 'sessions in all leave the key its places'],
  ],
  [
    110,
    [REGISTRY, 'if (entries.size >= total)', 'if (entries.size > total)'],
    ['test/facade/stream-registry.test.ts', 'a process has no more'],
  ],
  [
    109,
    [REGISTRY, '    for (const principal of principals) wereCut.set(principal, true);\n', ''],
    [OF_STREAMS, 'asked for before'],
  ],
  [
    109,
    [
      'src/facade/pages/page.ts',
      'const session = await find();\n  if (!session)',
      'const session = found;\n  if (!session)',
    ],
    [OF_STREAMS, 'begun before'],
  ],
  [
    109,
    ['src/runs/find.ts', 'run?.tenant === caller.tenant', 'run'],
    [OF_STREAMS, 'one of another tenant'],
  ],
];

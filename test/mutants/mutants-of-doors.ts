// Mutants of what keeps others out (architecture §11, I58, I59, I107): rows of mutants.ts.
import type { Row } from './mutants.ts';

const LOADER = 'src/system/typescript.js';
const LAUNCH = 'src/app/launch.js';
const CACHE = 'src/app/cache-folder.js';
const OF_LOADER = 'test/app/loader-cache.test.ts';
const OF_LAUNCH = 'test/app/launch.test.ts';
const OF_CACHE = 'test/app/cache-folder.test.ts';

export const OF_DOORS: readonly Row[] = [
  [
    58,
    [
      'src/adapters/postgres/page-session-store.ts',
      'DELETE FROM host_links WHERE link_hash = $1 AND expires_at_ms > $2 RETURNING tenant_id',
      'SELECT tenant_id FROM host_links WHERE link_hash = $1 AND expires_at_ms > $2',
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
  [107, [LAUNCH, '  openCacheFolder(cacheDir);\n', ''], [OF_LAUNCH, 'is refused in a sentence']],
  [107, [LAUNCH, ' | OTHERS_WRITE', ''], [OF_LAUNCH, 'others may not change']],
  [107, [CACHE, 'mode: 0o700', 'mode: 0o755'], [OF_CACHE, 'is made for its user alone']],
  [107, [CACHE, 'if (isAbove && (mode', 'if ((mode'], [OF_CACHE, 'though not take']],
  [
    107,
    [CACHE, '(mode & OTHERS_WRITE) !== 0', 'false'],
    [OF_CACHE, 'is refused where everybody may write'],
  ],
  [
    107,
    [CACHE, 'if (!isTrusted(uid, user)) return', 'if (false) return'],
    [OF_CACHE, 'belongs to somebody else'],
  ],
  [
    107,
    [CACHE, 'if (!isTrusted(state.uid, user)) return', 'if (false) return'],
    [OF_CACHE, 'somebody else’s link'],
  ],
];

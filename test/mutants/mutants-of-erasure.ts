// Mutants of erasure (architecture §10.1), as mutants.ts has them.
import type { Row } from './mutants.ts';

const KEYS = 'src/adapters/postgres/subject-keys.ts';
const SUBJECTS = 'src/adapters/postgres/subject-store.ts';
const SEALED_ROWS = 'src/adapters/postgres/rows.ts';
const MIGRATE = 'src/adapters/postgres/migrate.ts';
const OF_SUBJECTS = 'test/adapters/subjects.test.ts';
const OF_ERASING = 'test/acceptance/erasure.test.ts';
const OF_FORKS = 'test/acceptance/erasure-forks.test.ts';
const OF_PLACES = 'test/adapters/content-places.test.ts';

export const OF_ERASURE: readonly Row[] = [
  [
    84,
    [SEALED_ROWS, 'return atRest(seal, { place, json: payload, kept });', 'return payload;'],
    [OF_ERASING, 'planted is left'],
  ],
  [85, [KEYS, 'sinceMs - held.sinceMs <', 'sinceMs * 0 <'], [OF_SUBJECTS, 'without a word of it']],
  [
    86,
    [MIGRATE, 'name text NOT NULL, digest', 'name text NOT NULL, said text, digest'],
    [OF_PLACES, 'every column'],
  ],
  [
    87,
    [SUBJECTS, '(open.length > 0) return f', '(open.length < 0) return f'],
    [OF_SUBJECTS, 'a run of it is'],
  ],
  [
    88,
    [
      'src/runs/fork-children.ts',
      '...(parent.subjectKey === undefined ? {} : { subjectKey: parent.subjectKey }),',
      '',
    ],
    [OF_FORKS, 'are sealed with the same key'],
  ],
  [
    89,
    ['src/adapters/postgres/cohort-store.ts', "'r.subject_key IS NULL',", ''],
    [OF_FORKS, 'takes a run of a subject'],
  ],
];

// Typed lint. Rules that a formatter or tidy.test.ts already holds are not repeated here.
import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** What runs in the browser alone. */
const BROWSER = [
  'live',
  'home-live',
  'browser',
  'run-log',
  'made-again',
  'threads',
  'causes',
  'at',
].map((name) => `src/pages/${name}.js`);

const WAIT =
  'Ask whether it has happened (expect.poll, until), or say what the time is (quietFor, takes).';

export default tseslint.config(
  { ignores: ['node_modules', '.data', '.cache', 'schemas/types.generated.ts'] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
      eqeqeq: 'error',
      // What is private is so when it runs, too.
      'no-restricted-syntax': [
        'error',
        {
          selector:
            ':matches(PropertyDefinition, MethodDefinition[kind!="constructor"])[accessibility="private"]',
          message: 'Write #name.',
        },
      ],
    },
  },
  {
    // What a host of ours answers is exact already.
    files: ['src/{cli,words,pages}/**/*.ts', 'src/adapters/catalog/**/*.ts', 'src/facade/body.ts'],
    ignores: ['src/cli/{host-client,event-stream}.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        {
          object: 'JSON',
          property: 'parse',
          message: 'readJson (src/rules/json-text.ts) is exact.',
        },
      ],
    },
  },
  {
    // A sleep that stands for an event is too short one day (test/support/waiting.ts).
    files: ['test/**/*.test.ts'],
    rules: {
      'no-restricted-globals': ['error', { name: 'setTimeout', message: WAIT }],
      'no-restricted-imports': [
        'error',
        { name: 'node:timers/promises', importNames: ['setTimeout'], message: WAIT },
      ],
    },
  },
  { files: ['*.js', ...BROWSER], ...tseslint.configs.disableTypeChecked },
  {
    // Runs in the browser only: the project has no DOM types, so neither compiler nor lint can know its globals.
    files: BROWSER,
    rules: { 'no-undef': 'off', '@typescript-eslint/ban-ts-comment': 'off' },
  },
);

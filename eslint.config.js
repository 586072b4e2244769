import js from '@eslint/js';
import tseslint from 'typescript-eslint';

// Typed lint. Rules that a formatter or tidy.test.ts already holds are not repeated here.
export default tseslint.config(
  { ignores: ['node_modules', '.data', '.cache', 'src/wire/types.generated.ts'] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/require-await': 'off',
      eqeqeq: 'error',
    },
  },
  { files: ['*.js'], ...tseslint.configs.disableTypeChecked },
);

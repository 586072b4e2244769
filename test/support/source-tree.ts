// The repository as tidy.test.ts reads it: files with their syntax trees, what they import, what they mention.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { ROOT } from './root.ts';

export interface Import {
  /** Path in the repository, package name, or `node:…`. */
  readonly target: string;
  readonly inside: boolean;
  readonly typeOnly: boolean;
}

export interface SourceFile {
  /** Path in the repository. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  readonly tree: ts.SourceFile;
  readonly imports: readonly Import[];
}

/** Files that git knows or would take in, below the given folders. */
export function repositoryFiles(...folders: readonly string[]): string[] {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...folders];
  const listed = execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  return [...new Set(listed)].filter((path) => path !== '' && existsSync(ROOT + path)).sort();
}

export function readSource(path: string): SourceFile {
  const text = readFileSync(ROOT + path, 'utf8');
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  return { path, text, lines: text.split('\n').length - 1, tree, imports: importsOf(path, tree) };
}

function importsOf(path: string, tree: ts.SourceFile): Import[] {
  const found: Import[] = [];
  const add = (specifier: string, typeOnly: boolean) => {
    const inside = specifier.startsWith('.');
    const target = inside ? posix.join(posix.dirname(path), specifier) : packageOf(specifier);
    found.push({ target, inside, typeOnly });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      add(node.moduleSpecifier.text, isTypeOnly(node.importClause));
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
      add((node.moduleSpecifier as ts.StringLiteral).text, node.isTypeOnly);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add((node.argument.literal as ts.StringLiteral).text, true);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [specifier] = node.arguments;
      if (specifier && ts.isStringLiteral(specifier)) add(specifier.text, false);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function isTypeOnly(clause: ts.ImportClause | undefined): boolean {
  if (!clause || clause.isTypeOnly) return clause !== undefined;
  const names = clause.namedBindings;
  return (
    !clause.name &&
    names !== undefined &&
    ts.isNamedImports(names) &&
    names.elements.every((element) => element.isTypeOnly)
  );
}

function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** Relative paths in string literals, as `new URL('./worker.ts', import.meta.url)` has them. */
export function mentionedPaths(file: SourceFile): string[] {
  const names = [...file.text.matchAll(/['"`]((?:\.{1,2}\/)[\w./-]+\.\w+)['"`]/g)];
  return names.map(([, name]) => posix.join(posix.dirname(file.path), name ?? ''));
}

export interface FunctionSize {
  readonly where: string;
  /** Of a method or of the member or variable that holds the function; '' where nothing names it. */
  readonly name: string;
  readonly lines: number;
  readonly parameters: readonly string[];
}

/** Every function of a file; where = `path:line`. */
export function functionsOf(file: SourceFile): FunctionSize[] {
  const found: FunctionSize[] = [];
  const lineOf = (at: number) => file.tree.getLineAndCharacterOfPosition(at).line;
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const [first, last] = [lineOf(node.getStart(file.tree)), lineOf(node.end)];
      const names = node.parameters.map((one) => one.name.getText(file.tree));
      const parameters = names.filter((one) => one !== 'this');
      const where = `${file.path}:${first + 1}`;
      found.push({ where, name: nameOf(node, file.tree), lines: last - first + 1, parameters });
    }
    ts.forEachChild(node, visit);
  };
  visit(file.tree);
  return found;
}

function nameOf(node: ts.SignatureDeclaration, tree: ts.SourceFile): string {
  if (node.name) return node.name.getText(tree);
  const { parent } = node;
  const holds = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent);
  return holds ? parent.name.getText(tree) : '';
}

/** Names of the methods that interfaces of a file declare with more than `most` parameters. */
export function wideMethods(file: SourceFile, most: number): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isMethodSignature(node) && node.parameters.length > most)
      names.add(node.name.getText(file.tree));
    ts.forEachChild(node, visit);
  };
  visit(file.tree);
  return names;
}

const TESTS_AND_HOOKS = /^(it|test|itHere|describe|(before|after)(All|Each))$/;
const WAITS = /^(expect|until)$/;

/** Where a test file has a limit of its own in ms as a number, and not by `patient` or `paced`: file and line. */
export function bareLimits({ path, tree }: SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && hasBareLimit(node)) {
      const { line } = tree.getLineAndCharacterOfPosition(node.getStart(tree));
      found.push(`${path}:${line + 1}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function hasBareLimit({ expression, arguments: args }: ts.CallExpression): boolean {
  const name = calledName(expression);
  const isTest = TESTS_AND_HOOKS.test(name);
  if (!isTest && !WAITS.test(name)) return false;
  const last = args.at(-1);
  if (isTest && args.length > 1 && last && ts.isNumericLiteral(last)) return true;
  return args
    .filter(ts.isObjectLiteralExpression)
    .some(({ properties }) =>
      properties.some(
        (it) =>
          ts.isPropertyAssignment(it) &&
          ts.isIdentifier(it.name) &&
          /^(timeout|limitMs)$/.test(it.name.text) &&
          ts.isNumericLiteral(it.initializer),
      ),
    );
}

/** `it` of `it.each(table)(name, work)`; '' of what begins with no name. */
function calledName(callee: ts.Expression): string {
  if (ts.isIdentifier(callee)) return callee.text;
  return 'expression' in callee ? calledName(callee.expression as ts.Expression) : '';
}

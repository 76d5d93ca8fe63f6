import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { packageRoot } from '../../src/package-root.ts';

export interface SourceFile {
  /** Relative to the repository, with forward slashes: `src/http/app.ts`. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly SourceImport[];
}

export interface SourceImport {
  /** `src/errors.ts` for a file of ours, `node:fs` or `fastify` for a module. */
  readonly target: string;
  readonly ours: boolean;
  readonly typeOnly: boolean;
}

const FOLDERS = [
  'src',
  'hub',
  'checkpoint',
  'corpus',
  'prepare',
  'embeddings',
  'indexer',
  'export',
  'evaluation',
  'cli',
  'bench',
  'test',
];

/** Every TypeScript source with what it imports: static, dynamic and by `new URL` for a worker. */
export function readSources(): SourceFile[] {
  return FOLDERS.flatMap((folder) => typescriptFiles(join(packageRoot, folder))).map((file) => {
    const text = readFileSync(file, 'utf8');
    return { path: relative(packageRoot, file).replaceAll('\\', '/'), text, imports: importsOf(file, text) };
  });
}

function typescriptFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function importsOf(file: string, text: string): SourceImport[] {
  const found: SourceImport[] = [];
  const add = (specifier: string, typeOnly: boolean): void => {
    const ours = specifier.startsWith('.');
    const target = ours
      ? relative(packageRoot, join(dirname(file), specifier)).replaceAll('\\', '/')
      : moduleName(specifier);
    found.push({ target: ours ? target.replace(/\.js$/, '.ts') : target, ours, typeOnly });
  };
  for (const [, keyword, specifier] of text.matchAll(/^\s*(?:import|export)\s+(type\s)?[^;'"]*?from\s+'([^']+)'/gm)) {
    add(specifier!, keyword !== undefined);
  }
  for (const [, specifier] of text.matchAll(/^\s*import\s+'([^']+)'/gm)) add(specifier!, false);
  for (const [, specifier] of text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)) add(specifier!, false);
  for (const [, specifier] of text.matchAll(/new URL\(\s*'(\.[^']+\.js)',\s*import\.meta\.url\)/g))
    add(specifier!, false);
  return found;
}

function moduleName(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

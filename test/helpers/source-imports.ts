import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';

export interface SourceFile {
  /** Relative to the repository, with forward slashes: `src/server/app.ts`. */
  readonly path: string;
  readonly text: string;
  readonly imports: readonly SourceImport[];
}

interface SourceImport {
  /** `src/base/errors.ts` for a file of the repository, `node:fs` or `fastify` for a module. */
  readonly target: string;
  /** Whether the target is a file of the repository. */
  readonly internal: boolean;
  readonly typeOnly: boolean;
}

/** The source folders, as tsconfig.json lists them. */
const { include: FOLDERS } = JSON.parse(readFileSync(join(packageRoot, 'tsconfig.json'), 'utf8')) as {
  include: readonly string[];
};

/** Every TypeScript source with its imports: static, dynamic, and workers by `new URL`. */
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
    const internal = specifier.startsWith('.');
    const target = internal
      ? relative(packageRoot, join(dirname(file), specifier)).replaceAll('\\', '/')
      : moduleName(specifier);
    found.push({ target: internal ? target.replace(/\.js$/, '.ts') : target, internal, typeOnly });
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

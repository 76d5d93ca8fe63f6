import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';

export interface MarkdownPage {
  /** Relative to the repository. */
  readonly path: string;
  readonly text: string;
  /** Lines of fenced code blocks; lines that end with a backslash are joined with the next. */
  readonly codeLines: readonly string[];
  /** Inline code, without that in fenced blocks. */
  readonly inlineCode: readonly string[];
}

const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', 'build', '.git']);

/** Every Markdown page of the repository. */
export function readPages(folder = ''): MarkdownPage[] {
  return readdirSync(join(packageRoot, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory())
      return SKIPPED_FOLDERS.has(entry.name) || path.startsWith('indexes/') ? [] : readPages(path);
    return entry.name.endsWith('.md') ? [readPage(path)] : [];
  });
}

function readPage(path: string): MarkdownPage {
  const text = readFileSync(join(packageRoot, path), 'utf8');
  const codeLines: string[] = [];
  const prose = text.replaceAll(/^```[^\n]*\n([\s\S]*?)^```/gm, (_block, code: string) => {
    codeLines.push(...code.replaceAll('\\\n', ' ').split('\n'));
    return '';
  });
  const inlineCode = [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!);
  return { path, text, codeLines, inlineCode };
}

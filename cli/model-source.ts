import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { parseRepositoryName } from '../hub/repository.ts';
import { TrawlError } from '../src/errors.ts';

/** What `trawl model add` is given. */
export type ModelSourceArgument =
  | { readonly kind: 'folder'; readonly folder: string; readonly name: string }
  | { readonly kind: 'hub'; readonly id: string; readonly revision: string | undefined; readonly name: string };

/**
 * A text that begins with `/`, `./`, `../` or `~/`, or names a folder that is there, is a folder; `org/name` with or without
 * `@revision` is the hub's. USAGE for anything else.
 */
export function parseModelSource(text: string): ModelSourceArgument {
  const folder = resolve(text);
  const isFolder = text !== '' && (statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false);
  if (isFolder || /^(\.{0,2}|~)[/\\]|^\.{1,2}$|^[A-Za-z]:[/\\]/.test(text)) {
    return { kind: 'folder', folder, name: basename(folder) };
  }
  const at = text.indexOf('@');
  const [id, revision] = at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  if (!id.includes('/') || revision === '') {
    throw new TrawlError(
      'USAGE',
      `${JSON.stringify(text)} is neither a folder that is there nor an id of the hub, which has the form organisation/name ` +
        'or organisation/name@revision. A folder can be written with ./ in front.',
    );
  }
  return { kind: 'hub', id: parseRepositoryName(id), revision, name: id.slice(id.indexOf('/') + 1) };
}

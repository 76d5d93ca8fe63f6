import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import { cachedRepository, cachedSnapshot } from '../../src/encoder/model/hub-cache.ts';
import { parseRepositoryName } from '../hub/repository.ts';

export type ModelSourceArgument =
  | {
      readonly type: 'folder';
      readonly folder: string;
      readonly name: string;
      /** The folder's name, or the repository's id for a folder in the cache of Python's huggingface_hub, with its commit. */
      readonly id: string;
      readonly revision?: string;
    }
  | { readonly type: 'hub'; readonly id: string; readonly revision: string | undefined; readonly name: string };

/** Parses a path (it begins with `/`, `./`, `../` or `~/`, or exists) or a hub id, `org/name[@revision]`. Throws USAGE. */
export function parseModelSource(text: string): ModelSourceArgument {
  const folder = resolve(text);
  const isFolder = text !== '' && (statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false);
  if (isFolder || /^(\.{0,2}|~)[/\\]|^\.{1,2}$|^[A-Za-z]:[/\\]/.test(text)) {
    const snapshot = cachedSnapshot(folder);
    const cached = cachedRepository(snapshot);
    if (cached === null) return { type: 'folder', folder, name: basename(folder), id: basename(folder) };
    return { type: 'folder', folder: snapshot, name: basename(cached.id), ...cached };
  }
  const at = text.indexOf('@');
  const [id, revision] = at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  if (!id.includes('/') || revision === '') {
    throw new TrawlError(
      'USAGE',
      `${JSON.stringify(text)} is neither an existing folder nor a hub id. Expected organisation/name, ` +
        'organisation/name@revision, or a folder such as ./my-checkpoint.',
    );
  }
  return { type: 'hub', id: parseRepositoryName(id), revision, name: id.slice(id.indexOf('/') + 1) };
}

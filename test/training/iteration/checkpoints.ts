import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packageRoot } from '../../../src/base/package-root.ts';
import { tinyCheckpoint } from '../../helpers/tiny-checkpoint.ts';

/** A copy of the bundled encoder, as a checkpoint whose queries are embedded with another prefix. */
export function encoderCheckpoint(folder: string, name: string, queryPrefix: string): string {
  const out = join(folder, name);
  cpSync(join(packageRoot, 'models', 'token-average-256'), out, { recursive: true });
  const file = join(out, 'trawl-model.json');
  const description = JSON.parse(readFileSync(file, 'utf8')) as { prefixes: { query: string }; name: string };
  description.prefixes.query = queryPrefix;
  description.name = name;
  writeFileSync(file, JSON.stringify(description));
  return out;
}

/** A BERT with random weights; without `modules`, as tevatron writes it, it does not say its pooling and prefixes. */
export function bertCheckpoint(
  folder: string,
  name: string,
  { modules = true, seed = 1 }: { readonly modules?: boolean; readonly seed?: number } = {},
): string {
  const out = join(folder, name);
  for (const [path, content] of Object.entries(tinyCheckpoint(seed))) {
    const isOfModules = path === 'modules.json' || path.startsWith('1_Pooling/');
    if (!/\.(json|safetensors)$/.test(path) || (isOfModules && !modules)) continue;
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), content);
  }
  return out;
}

import { relative, sep } from 'node:path';
import { asTrawlError } from '../../src/base/errors.ts';
import { formatBytes } from '../../src/base/format.ts';
import { listModels, locateModelFolder } from '../../src/encoder/model/model-location.ts';
import { factsOf, type ModelFacts } from './model-facts.ts';

type ListedModel = ModelFacts | { readonly name: string; readonly problem: string };

/** Every model in models/, or why it cannot be used. */
export async function listedModels(): Promise<ListedModel[]> {
  const models: ListedModel[] = [];
  for (const name of listModels()) {
    try {
      models.push(await factsOf(locateModelFolder(name)));
    } catch (error) {
      models.push({ name, problem: asTrawlError(error).message });
    }
  }
  return models;
}

/** One line per model. */
export function modelTable(models: readonly ListedModel[]): string[] {
  const width = Math.max(0, ...models.map((model) => modelNameFor(model).length));
  return models.map((model) => {
    const facts =
      'problem' in model
        ? `cannot be used: ${model.problem}`
        : `${whatOf(model)}, ${model.precisions.join(' + ')}, ${formatBytes(model.bytes)}`;
    return `${modelNameFor(model).padEnd(width)}  ${facts}`;
  });
}

function whatOf({ kind, architecture, dimension }: ModelFacts): string {
  return kind === 'cross-encoder' ? `${architecture}, cross-encoder` : `${architecture}, ${dimension} dimensions`;
}

/** The value to use for `--model`: the folder's name if a look-up finds it, else its path. */
export function modelNameFor(model: ListedModel): string {
  if ('problem' in model) return model.name;
  const folderName = model.folder.split(sep).at(-1)!;
  try {
    if (locateModelFolder(folderName) === model.folder) return folderName;
  } catch {
    // Not in models/.
  }
  const path = relative(process.cwd(), model.folder);
  return path.includes(sep) ? path : `.${sep}${path}`;
}

import { dirname, join, relative, sep } from 'node:path';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import type { Published } from '../../indexer/hub/published.ts';
import { quoteForShell } from '../../src/base/format.ts';

/** The commands that make an index from the pulled files, which stay in place. `folderOf` returns a repository's folder. */
export function nextCommands(published: Published, folderOf: (repository: string) => string): string[] {
  const paths = (holds: 'corpus' | 'vectors'): string[] =>
    published.parts
      .filter((part) => part.holds === holds)
      .flatMap(({ repository, files }) => files.map(({ path }) => join(folderOf(repository), path)));
  const shown = (all: readonly string[]): string => all.map((path) => quoteForShell(fromHere(path))).join(' ');
  const { name, index, zipHolds } = published;
  const model = index?.model ?? 'intfloat/e5-base-v2';
  const modelName = model.slice(model.indexOf('/') + 1);
  const out = `indexes/${name}`;
  let corpus = paths('corpus');
  const commands = [`trawl model add ${model}`];
  if (zipHolds !== undefined) {
    const folder = dirname(corpus[0]!);
    commands.push(`unzip ${shown(corpus)} -d ${shown([folder])}`);
    corpus = [join(folder, zipHolds)];
  }
  if (index === undefined) return [...commands, `trawl index ${shown(corpus)} --model ${modelName} --out ${out}`];
  const template =
    index.passageTemplate === DEFAULT_PASSAGE_TEMPLATE
      ? ''
      : ` --passage-template ${quoteForShell(index.passageTemplate)}`;
  return [
    ...commands,
    `trawl import ${shown(paths('vectors'))} --corpus ${shown(corpus)} --model ${modelName}${template} --out ${out}`,
  ];
}

/** The path, relative to the current folder if it is inside. */
function fromHere(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith(`..${sep}`) ? path : near;
}

import { isAbsolute, join, normalize, sep } from 'node:path';
import { TrawlError } from '../../src/base/errors.ts';
import type { Pooling } from '../../src/encoder/identity/model-identity.ts';
import { readJsonFile, readJsonIfPresent } from '../../src/encoder/model/json-file.ts';
import { CheckpointWeights } from './checkpoint-weights.ts';
import { ConfigReader } from './config-reader.ts';
import { type Dense, WeightFinder } from './weight-finder.ts';

/** A Dense module of sentence-transformers, which changes a text's vector after the pooling (GTR, sentence-T5, LaBSE). */
export interface DenseModule {
  readonly dense: Dense;
  readonly activation: 'identity' | 'tanh';
}

/** The Dense modules of a folder. Close them after use. */
export interface DenseModules {
  readonly modules: readonly DenseModule[];
  /** Values of a vector after the last module; null without modules. */
  readonly dimension: number | null;
  /** Absolute paths of the files with their weights. */
  readonly files: readonly string[];
  close(): Promise<void>;
}

const ACTIVATIONS = { identity: 'identity', tanh: 'tanh' } as const;

export const NO_MODULES: DenseModules = { modules: [], dimension: null, files: [], close: async () => undefined };

/**
 * Reads the Dense modules that modules.json names. The graphs apply them to every token, before the pooling: for the first or the
 * last token and for a mean of linear maps the result is the same. Throws MODEL_INVALID if it would not be the same, and for
 * modules that do not fit.
 */
export async function readDenseModules(folder: string, pooling: Pooling, hiddenSize: number): Promise<DenseModules> {
  const listed = await readJsonIfPresent(join(folder, 'modules.json'));
  const open: CheckpointWeights[] = [];
  const modules: DenseModule[] = [];
  const close = async (): Promise<void> => {
    for (const weights of open) await weights.close();
  };
  let width = hiddenSize;
  try {
    for (const path of densePaths(folder, listed)) {
      const configPath = join(path, 'config.json');
      const read = new ConfigReader(await readJsonFile(configPath), configPath);
      const inputs = read.count('in_features', 1);
      if (inputs !== width)
        throw read.refused(`in_features is ${inputs}, but the vectors before it have ${width} values`);
      const outputs = read.count('out_features', 1);
      const activation = activationOf(read);
      if (activation !== 'identity' && pooling === 'mean') {
        throw read.refused(
          `activation_function is ${activation}; after a mean pooling only a linear Dense module is supported`,
        );
      }
      const weights = await CheckpointWeights.open(path);
      open.push(weights);
      const find = new WeightFinder(weights, '');
      modules.push({ dense: find.denseOrMatrix(read.flag('bias', true), 'linear', outputs, inputs), activation });
      width = outputs;
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    modules,
    dimension: modules.length === 0 ? null : width,
    files: open.flatMap((weights) => weights.files),
    close,
  };
}

function activationOf(read: ConfigReader): DenseModule['activation'] {
  // The path of a class of torch; sentence-transformers' default is tanh.
  const name = String(read.value('activation_function') ?? 'Tanh')
    .split('.')
    .at(-1)!
    .toLowerCase();
  if (Object.hasOwn(ACTIVATIONS, name)) return ACTIVATIONS[name as keyof typeof ACTIVATIONS];
  throw read.refused(
    `activation_function is ${JSON.stringify(read.value('activation_function'))}; expected Identity or Tanh of torch.nn`,
  );
}

/** Absolute paths of the folders of the Dense modules, in order. */
function densePaths(folder: string, listed: unknown): readonly string[] {
  if (!Array.isArray(listed)) return [];
  const modules = listed as readonly { readonly type?: unknown; readonly path?: unknown }[];
  return modules
    .filter(({ type }) => String(type).split('.').at(-1) === 'Dense')
    .map(({ path }) => {
      const inner = normalize(String(path ?? ''));
      if (isAbsolute(inner) || inner.split(sep)[0] === '..') {
        throw new TrawlError(
          'MODEL_INVALID',
          `${join(folder, 'modules.json')}: the path of the Dense module, "${inner}", must be inside the folder.`,
        );
      }
      return join(folder, inner);
    });
}

import { join, normalize } from 'node:path';
import type { Pooling } from '../../src/encoder/identity/model-identity.ts';
import { invalidModel, leadsOutside, readJsonFile, readJsonIfPresent } from '../../src/encoder/model/json-file.ts';
import { CheckpointWeights } from './checkpoint-weights.ts';
import { ConfigReader } from './config-reader.ts';
import { className } from './import-source.ts';
import { type Dense, WeightFinder } from './weight-finder.ts';

/** A Dense module of sentence-transformers, which changes a text's vector after the pooling (GTR, sentence-T5, LaBSE). */
export interface DenseModule {
  readonly dense: Dense;
  readonly activation: 'identity' | 'tanh';
}

/** The Dense modules of a folder. Close them after use. */
interface DenseModules {
  readonly modules: readonly DenseModule[];
  /** Values of a vector after the last module; undefined without modules. */
  readonly dimension?: number;
  readonly files: readonly string[];
  close(): Promise<void>;
}

export const NO_MODULES: DenseModules = { modules: [], files: [], close: async () => undefined };

/**
 * Reads the Dense modules that modules.json names. The graphs apply them to every token, before the pooling: for the first or the
 * last token and for a mean of linear maps the result is the same. Throws MODEL_INVALID if it would not be the same, and for
 * modules that do not fit.
 */
export async function readDenseModules(folder: string, pooling: Pooling, hiddenSize: number): Promise<DenseModules> {
  const open: CheckpointWeights[] = [];
  const modules: DenseModule[] = [];
  const close = async (): Promise<void> => {
    for (const weights of open) await weights.close();
  };
  let width = hiddenSize;
  try {
    for (const path of await densePaths(folder)) {
      const configPath = join(path, 'config.json');
      const read = new ConfigReader(await readJsonFile(configPath), configPath);
      const inputs = read.count('in_features', 1);
      if (inputs !== width) {
        throw read.refused(`in_features is ${inputs}, but the vectors before it have ${width} values`);
      }
      const outputs = read.count('out_features', 1);
      const activation = readActivation(read);
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
  if (modules.length === 0) return NO_MODULES;
  return { modules, dimension: width, files: open.flatMap((weights) => weights.files), close };
}

/** The class of torch; sentence-transformers' default is Tanh. */
function readActivation(read: ConfigReader): DenseModule['activation'] {
  const given = read.value('activation_function') ?? 'Tanh';
  const name = className(String(given)).toLowerCase();
  if (name === 'identity' || name === 'tanh') return name;
  throw read.refused(`activation_function is ${JSON.stringify(given)}; expected Identity or Tanh of torch.nn`);
}

/** Absolute paths of the folders of the Dense modules, in order. */
async function densePaths(folder: string): Promise<readonly string[]> {
  const modulesPath = join(folder, 'modules.json');
  const listed = await readJsonIfPresent(modulesPath);
  const modules: readonly { readonly type?: unknown; readonly path?: unknown }[] = Array.isArray(listed) ? listed : [];
  return modules
    .filter(({ type }) => className(String(type)) === 'Dense')
    .map(({ path }) => {
      const inner = normalize(String(path ?? ''));
      if (!leadsOutside(inner)) return join(folder, inner);
      throw invalidModel(`${modulesPath}: the path of the Dense module, "${inner}", must be inside the folder.`);
    });
}

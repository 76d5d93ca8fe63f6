import { TrawlError } from '../src/errors.ts';
import type { RepositoryFile } from './repository.ts';

/** Configs, tokenizer and vocabulary; in the root and in the folders of sentence-transformers' modules (`1_Pooling`). */
const SMALL_FILES = /^(\d+_[A-Za-z]\w*\/)?([\w.-]+\.json|vocab\.txt|merges\.txt)$/;
/** JSON that no import looks at. */
const UNUSED =
  /^(.*\/)?(openvino_config|quantize_config|ort_config|train_results|eval_results|all_results|trainer_state)\.json$/;
/** Old layouts have the encoder in the first module's folder. */
const WEIGHT_FOLDERS = ['', '0_Transformer/'];
/** Where exporters put a graph, best first. */
const GRAPHS = ['onnx/model.onnx', 'model.onnx'];

/**
 * The files of a repository that the import of a checkpoint needs: configs, tokenizer, and the weights once. Safetensors
 * where there are some, else an ONNX graph; never the same weights in a second format.
 *
 * @throws TrawlError MODEL_INVALID when the repository has neither, or is no Transformers checkpoint.
 */
export function checkpointFiles(files: readonly RepositoryFile[]): RepositoryFile[] {
  const paths = new Set(files.map(({ path }) => path));
  const weights =
    WEIGHT_FOLDERS.map((folder) => safetensorsOf(folder, paths)).find((found) => found.length > 0) ?? graphOf(paths);
  if (!paths.has('config.json') && !paths.has('0_Transformer/config.json')) {
    throw new TrawlError(
      'MODEL_INVALID',
      'The repository has no config.json: it is no Transformers or sentence-transformers checkpoint.',
    );
  }
  if (weights.length === 0) throw noWeights(paths);
  const wanted = new Set(weights);
  const moduleWeights = /^[1-9]\d*_[A-Za-z]\w*\/model\.safetensors$/;
  return files.filter(
    ({ path }) =>
      wanted.has(path) || moduleWeights.test(path) || (SMALL_FILES.test(path) && !UNUSED.test(path) && !isIndex(path)),
  );
}

/** The weights among the files, in bytes: what a model made of them has about as well. */
export function weightBytes(files: readonly RepositoryFile[]): number {
  return files
    .filter(({ path }) => /\.(safetensors|onnx|onnx_data|data)$/.test(path))
    .reduce((sum, { bytes }) => sum + bytes, 0);
}

function isIndex(path: string): boolean {
  return path.endsWith('.index.json');
}

function safetensorsOf(folder: string, paths: ReadonlySet<string>): string[] {
  const single = `${folder}model.safetensors`;
  if (paths.has(single)) return [single];
  const index = `${single}.index.json`;
  if (!paths.has(index)) return [];
  return [
    index,
    ...[...paths].filter(
      (path) => path.startsWith(folder) && /^model-\d+-of-\d+\.safetensors$/.test(path.slice(folder.length)),
    ),
  ];
}

function graphOf(paths: ReadonlySet<string>): string[] {
  const graph = GRAPHS.find((path) => paths.has(path));
  return graph === undefined ? [] : [graph, `${graph}_data`, `${graph}.data`].filter((path) => paths.has(path));
}

function noWeights(paths: ReadonlySet<string>): TrawlError {
  const pickled = [...paths].some((path) => /(^|\/)pytorch_model.*\.bin$/.test(path));
  return new TrawlError(
    'MODEL_INVALID',
    pickled
      ? 'The repository has its weights only as pytorch_model.bin, which is not read because it can execute code. Look for a ' +
          'revision with safetensors (often refs/pr/1, a pull request of the hub), or write one with Python: ' +
          'AutoModel.from_pretrained(id).save_pretrained(folder, safe_serialization=True), and add the folder.'
      : 'The repository has neither model.safetensors nor model.onnx (in its root or in onnx/), so there is nothing to import.',
  );
}

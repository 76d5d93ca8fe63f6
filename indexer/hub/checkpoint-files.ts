import type { TrawlError } from '../../src/base/errors.ts';
import { invalidModel } from '../../src/encoder/model/json-file.ts';
import type { RepositoryFile } from './repository.ts';

/** Configs, tokenizer and vocabulary, in the root and in the folders of sentence-transformers modules (`1_Pooling`). */
const SMALL_FILES = /^(\d+_[A-Za-z]\w*\/)?([\w.-]+\.json|vocab\.txt|merges\.txt)$/;
/** JSON files that no import reads. */
const UNUSED =
  /^(.*\/)?(openvino_config|quantize_config|ort_config|train_results|eval_results|all_results|trainer_state)\.json$/;
/** Folders that may hold the weights; in old layouts it is the first module's folder. */
const WEIGHT_FOLDERS = ['', '0_Transformer/'];
/** Paths that exporters use for a graph, best first. */
const GRAPHS = ['onnx/model.onnx', 'model.onnx'];

/**
 * The files of a repository that a model import needs: configs, tokenizer, and the weights in one format: safetensors if there are any,
 * else an ONNX graph; with `graphFirst` the other way round. Throws MODEL_INVALID if the repository has neither or is not a Transformers
 * checkpoint.
 */
export function checkpointFiles(
  files: readonly RepositoryFile[],
  { graphFirst = false }: { readonly graphFirst?: boolean } = {},
): RepositoryFile[] {
  const paths = new Set(files.map(({ path }) => path));
  const safetensors = WEIGHT_FOLDERS.map((folder) => findSafetensors(folder, paths));
  const formats = graphFirst ? [findGraph(paths), ...safetensors] : [...safetensors, findGraph(paths)];
  if (!paths.has('config.json') && !paths.has('0_Transformer/config.json')) throw noConfig(paths);
  const weights = formats.find((found) => found.length > 0);
  if (weights === undefined) throw noWeights(paths);
  const wanted = new Set(weights);
  const moduleWeights = /^[1-9]\d*_[A-Za-z]\w*\/model\.safetensors$/;
  return files.filter(
    ({ path }) =>
      wanted.has(path) || moduleWeights.test(path) || (SMALL_FILES.test(path) && !UNUSED.test(path) && !isIndex(path)),
  );
}

/** The files of `checkpointFiles` that say what the model is: configs, without weights and tokenizer. Throws as `checkpointFiles`. */
export function describingFiles(files: readonly RepositoryFile[]): RepositoryFile[] {
  return checkpointFiles(files).filter(
    ({ path }) =>
      path.endsWith('.json') && !path.endsWith('.index.json') && !/(^|\/)(tokenizer|vocab)\.json$/.test(path),
  );
}

/** Total size of the weights in bytes, about the size of a model made of them. */
export function weightBytes(files: readonly RepositoryFile[]): number {
  return files
    .filter(({ path }) => /\.(safetensors|onnx|onnx_data|data)$/.test(path))
    .reduce((sum, { bytes }) => sum + bytes, 0);
}

function isIndex(path: string): boolean {
  return path.endsWith('.index.json');
}

function findSafetensors(folder: string, paths: ReadonlySet<string>): string[] {
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

function findGraph(paths: ReadonlySet<string>): string[] {
  const graph = GRAPHS.find((path) => paths.has(path));
  return graph === undefined ? [] : [graph, `${graph}_data`, `${graph}.data`].filter((path) => paths.has(path));
}

function noConfig(paths: ReadonlySet<string>): TrawlError {
  return invalidModel(
    paths.has('adapter_config.json')
      ? "The repository has an adapter (LoRA), not a whole model. Merge it into the model that it changes, with Python's peft: " +
          'model.merge_and_unload().save_pretrained(folder), and add the folder.'
      : 'The repository has no config.json, so it is not a Transformers or sentence-transformers checkpoint.',
  );
}

function noWeights(paths: ReadonlySet<string>): TrawlError {
  const isPickled = [...paths].some((path) => /(^|\/)pytorch_model.*\.bin$/.test(path));
  return invalidModel(
    isPickled
      ? 'The repository has its weights only as pytorch_model.bin, which Trawl does not read because it can execute code. Use a ' +
          'revision with safetensors (often refs/pr/1, a pull request on the hub), or write one with Python: ' +
          'AutoModel.from_pretrained(id).save_pretrained(folder, safe_serialization=True), and add the folder.'
      : 'The repository has no weights to import: neither model.safetensors nor model.onnx, in its root or in onnx/.',
  );
}

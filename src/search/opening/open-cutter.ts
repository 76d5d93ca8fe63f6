import { TokenCutter, tokenizerFile } from '../../encoder/cutting/token-cutter.ts';
import { isServerUrl } from '../../encoder/model-server/server-url.ts';
import type { IndexManifest } from '../../index/manifest/index-manifest.ts';
import { type IndexEncoderOptions, recordedModel } from './open-index-encoder.ts';

export interface CutterOptions extends Pick<IndexEncoderOptions, 'model'> {
  /** The tokenizer of `cut`: a model's name or folder, or a tokenizer.json. Default: the tokenizer of the index's model. */
  readonly cutTokenizer?: string;
}

/**
 * The tokenizer that is named, which must exist, or the tokenizer of the index's model, which is looked for when it is first needed. Undefined if
 * none is known.
 */
export async function openCutter(
  folders: readonly string[],
  manifest: IndexManifest,
  { cutTokenizer, model: named }: CutterOptions,
): Promise<TokenCutter | undefined> {
  if (cutTokenizer !== undefined) {
    const file = await tokenizerFile(cutTokenizer);
    return new TokenCutter(async () => file);
  }
  const { model } = manifest;
  if (model === null) return undefined;
  // An endpoint has no tokenizer here.
  const isUrl = named !== undefined && isServerUrl(named);
  if (model.endpoint !== undefined && (named === undefined || isUrl)) return undefined;
  const folder = named === undefined || isUrl ? () => recordedModel(folders, { ...manifest, model }) : () => named;
  return new TokenCutter(async () => tokenizerFile(folder()));
}

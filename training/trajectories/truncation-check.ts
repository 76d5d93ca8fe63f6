import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { TextTokenizer } from '../../src/encoder/tokenizer/tokenizer.ts';
import { tokenizeInput } from '../../src/encoder/tokenizer/truncation.ts';

export type TruncationCheck = (query: string) => boolean;

/** @throws TrawlError MODEL_NOT_FOUND, MODEL_INVALID. */
export async function openTruncationCheck(model: string, maxTokens: number | undefined): Promise<TruncationCheck> {
  const folder = await readModelFolder(model, {}, { kind: 'encoder', checksums: false });
  const tokenizer = await TextTokenizer.load(folder.tokenizerPath);
  const options = {
    prefix: folder.identity.prefixes.query,
    maxTokens: maxTokens ?? folder.identity.maxTokens.query,
    truncate: 'tail',
  } as const;
  return (query) => tokenizeInput(tokenizer, query, options).cut !== 'nothing';
}

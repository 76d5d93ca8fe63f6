/**
 * The text around query and passage for a reranker that reads a chat, cut at its places. Each place must end a word for the
 * tokenizer, as a space before it and a special token or a line break after it do: the parts are tokenised apart.
 */
export interface PairTemplate {
  readonly before: string;
  readonly between: string;
  readonly after: string;
}

/** Cuts `…{query}…{passage}…`. Null if a place is missing, is there twice, or the order is another. */
export function parsePairTemplate(text: string): PairTemplate | null {
  const parts = text.split(/\{(query|passage)\}/);
  if (parts.length !== 5 || parts[1] !== 'query' || parts[3] !== 'passage') return null;
  return { before: parts[0]!, between: parts[2]!, after: parts[4]! };
}

import { TrawlError } from '../../base/errors.ts';

/** What clients get in place of messages for operators, which name internal addresses and options. The log has the messages. */
const MESSAGES: Readonly<Partial<Record<TrawlError['code'], string>>> = {
  ENDPOINT_FAILED: "The server's encoder did not answer, or gave an unusable answer. Send the request again.",
  ENDPOINT_REFUSED: "The server's encoder refuses a text, for its length for example. Shorten it.",
  MODEL_MISMATCH: "The server's encoder is not the one of the index. Send the request again later.",
};

/** The error as clients see it: without addresses and advice for operators. */
export function clientError(error: TrawlError): TrawlError {
  const message = MESSAGES[error.code];
  if (message === undefined) return error;
  const { query } = error.details;
  const position = typeof query === 'number' ? `Query ${query}: ` : '';
  return new TrawlError(error.code, position + message, { details: error.details, cause: error });
}

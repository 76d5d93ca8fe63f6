import { type ErrorCode, TrawlError } from '../../base/errors.ts';

/** One fault of a request in FastAPI's format, which clients of the original servers print. */
export interface ValidationIssue {
  /** Pydantic's name for the fault, such as `string_type`. */
  readonly type: string;
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  /** The value found, if it is small. */
  readonly input?: string | number | boolean | null;
}

/** An error in the body, a parameter or a header of a valid HTTP request. */
export class RequestError extends TrawlError {
  readonly issues: readonly ValidationIssue[];

  constructor(code: ErrorCode, message: string, issues: readonly ValidationIssue[]) {
    super(code, message);
    this.issues = issues;
  }
}

const MAX_ISSUES = 20;
const MAX_INPUT_CHARACTERS = 100;

/** Collects all faults of a request, so that users can fix them at once. */
export class Issues {
  readonly #issues: ValidationIssue[] = [];
  readonly #part: string;
  #count = 0;

  /** @param part the parsed part of the request, which begins every `loc`. */
  constructor(part = 'body') {
    this.#part = part;
  }

  add(type: string, loc: readonly (string | number)[], msg: string, input: unknown): void {
    this.#count++;
    if (this.#issues.length >= MAX_ISSUES) return;
    this.#issues.push({ type, loc: [this.#part, ...loc], msg, ...smallInput(input) });
  }

  throwIfAny(): void {
    const first = this.#issues[0];
    if (first === undefined) return;
    const more = this.#count > 1 ? ` (and ${this.#count - 1} more)` : '';
    throw new RequestError('INVALID_REQUEST', `${first.loc.join('.')}: ${first.msg}${more}`, this.#issues);
  }
}

/** Only scalars: lists and objects can be large. */
function smallInput(input: unknown): Pick<ValidationIssue, 'input'> {
  if (typeof input === 'string') return input.length <= MAX_INPUT_CHARACTERS ? { input } : {};
  if (input === null || typeof input === 'number' || typeof input === 'boolean') return { input };
  return {};
}

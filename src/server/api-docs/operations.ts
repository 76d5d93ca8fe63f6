import type { TSchema } from 'typebox';
import type { Access } from '../access/access.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { VIEW_HEADER } from '../indexes/view-choice.ts';
import { anyOf, componentName, type Json, ref, requestSchema } from './schemas.ts';

/** A route that does not belong to a dialect. */
export interface Operation {
  /** Default: get. */
  readonly method?: 'get' | 'post';
  /** In OpenAPI's notation, with parameters in braces. */
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly access: Access;
  readonly parameters?: readonly { readonly name: string; readonly description: string; readonly example: string }[];
  readonly request?: { readonly schema: TSchema; readonly required: boolean; readonly example: object };
  /** Schema of the JSON response, or `text`. */
  readonly reply: TSchema | 'text' | 'bytes';
  /** Whether it answers 200 even while the server starts and stops. */
  readonly always?: boolean;
  /** Descriptions of further error statuses. */
  readonly errors?: Readonly<Record<string, string>>;
}

/** Errors of all POST routes. */
const ERRORS: Readonly<Record<string, string>> = {
  413: 'The body is too large, or there are too many queries.',
  415: 'The content type is not JSON.',
  422: 'The body is not JSON, or a field is missing or has a wrong value.',
  500: 'The server or one of the queries failed.',
  503: 'The server is starting, stopping or overloaded, or the time limit has passed; retry-after has the seconds to wait.',
};

const INDEX_PARAMETER: Json = {
  name: 'index',
  in: 'query',
  required: false,
  schema: { type: 'string' },
  description:
    'Name of the index. Absent: the default index. The prefix /indexes/NAME of the path does the same. A prefix /views/NAME limits ' +
    'the request to a view.',
};

/** Headers of the responses of routes that return passages. */
const VIEW_HEADERS: Json = {
  [VIEW_HEADER]: {
    description: 'The views that limited the request, with commas in between. Absent if there are none.',
    schema: { type: 'string' },
  },
};

const KEY_ERRORS: Readonly<Record<string, string>> = {
  401: 'The API key is missing or not valid for this server.',
};

/** Omits dialects without fields (which the server always refuses) from a shared path: their schemas would match any body. */
export function isDescribed({ path, request }: Dialect, dialects: readonly Dialect[]): boolean {
  const { properties = {} } = request as { properties?: object };
  return (
    Object.keys(properties).length > 0 || dialects.every((other) => other.request === request || other.path !== path)
  );
}

/** The operation of the dialects of a path, which the server tells apart by the body. */
export function postOperation(dialects: readonly Dialect[]): Json {
  const [first] = dialects;
  const described = dialects.filter((dialect) => isDescribed(dialect, dialects));
  const parameters = [...(first?.path ?? '').matchAll(/:(\w+)/g)].map(([, name]) => pathParameter(name!, '', 'x'));
  parameters.push(INDEX_PARAMETER);
  const responses: Json = {
    200: {
      ...jsonContent('The response.', anyOf(described.map(({ name }) => `${componentName(name)}Reply`))),
      headers: VIEW_HEADERS,
    },
  };
  const statuses = {
    ...KEY_ERRORS,
    404: 'Index or model not found.',
    ...ERRORS,
    501: 'The index or the server does not support it.',
    ...otherStatuses(dialects),
  };
  for (const [status, description] of Object.entries(statuses))
    responses[status] = jsonContent(description, ref('Error'));
  return {
    operationId: dialects.length === 1 ? operationId(first!.name) : operationId(first!.path.slice(1)),
    summary:
      dialects.length === 1 ? first!.summary : 'Requests in the formats of several projects, recognised by the body',
    description: dialects
      .map(({ name, summary, onlyIfNamed }) => `- ${name}: ${summary}${named(onlyIfNamed)}`)
      .join('\n'),
    parameters,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: anyOf(described.map(({ name }) => `${componentName(name)}Request`)),
          examples: Object.fromEntries(
            described.map(({ name, summary, onlyIfNamed, example }) => [
              name,
              { summary: `${summary}${named(onlyIfNamed)}`, value: example },
            ]),
          ),
        },
      },
    },
    responses,
  };
}

/** The operation of a dialect whose fields are parameters of the URL. */
export function getOperation({ name, summary, request, example, statuses }: Dialect): Json {
  const { properties, required = [] } = requestSchema(request) as {
    properties: Record<string, Json>;
    required?: readonly string[];
  };
  const parameters = Object.entries(properties).map(([field, { description, ...schema }]) => ({
    name: field,
    in: 'query',
    required: required.includes(field),
    schema,
    description,
    example: example[field],
  }));
  const { 413: _large, 415: _type, ...errors } = ERRORS;
  const responses: Json = {
    200: { ...jsonContent('The response.', ref(`${componentName(name)}Reply`)), headers: VIEW_HEADERS },
  };
  const described = {
    ...KEY_ERRORS,
    404: 'Index not found.',
    413: 'The query is too long.',
    ...errors,
    501: 'The index or the server does not support it.',
    ...Object.fromEntries(Object.values(statuses).map((status) => [String(status), 'The request is not valid.'])),
  };
  for (const [status, description] of Object.entries(described)) {
    responses[status] = jsonContent(description, ref('Error'));
  }
  return { operationId: operationId(name), summary, parameters: [...parameters, INDEX_PARAMETER], responses };
}

function named(onlyIfNamed: boolean): string {
  return onlyIfNamed ? ' (only with --dialect and this name)' : '';
}

function otherStatuses(dialects: readonly Dialect[]): Record<string, string> {
  const others = dialects.flatMap(({ statuses }) => Object.values(statuses));
  return Object.fromEntries(
    others.map((status) => [String(status), status === 501 ? 'Not supported.' : 'The request is not valid.']),
  );
}

/** The operation of a route that does not belong to a dialect. */
export function otherOperation(operation: Operation): Json {
  const { name, summary, access, parameters = [], request, reply, always = false, errors = {} } = operation;
  const refusals: Readonly<Record<string, string>> = {
    ...(access === 'open' ? {} : KEY_ERRORS),
    ...(access === 'admin' ? { 403: 'An admin key is required.' } : {}),
    ...(parameters.length === 0 ? {} : { 404: 'Not found.' }),
    ...(request === undefined ? {} : { 413: ERRORS[413]!, 415: ERRORS[415]!, 422: ERRORS[422]! }),
    ...errors,
    ...(always ? {} : { 503: ERRORS[503]! }),
  };
  return {
    operationId: operationId(name),
    summary,
    ...(access === 'open' ? { security: [] } : {}),
    ...(parameters.length === 0
      ? {}
      : { parameters: parameters.map((each) => pathParameter(each.name, each.description, each.example)) }),
    requestBody:
      request === undefined
        ? undefined
        : {
            required: request.required,
            content: {
              'application/json': {
                schema: ref(`${componentName(name)}Request`),
                examples: { [name]: { value: request.example } },
              },
            },
          },
    responses: {
      200: replyContent(name, reply),
      ...Object.fromEntries(
        Object.entries(refusals).map(([status, description]) => [
          status,
          jsonContent(description, access === 'open' ? { type: 'object' } : ref('Error')),
        ]),
      ),
    },
  };
}

function replyContent(name: string, reply: Operation['reply']): Json {
  const description = 'The response.';
  if (reply !== 'text' && reply !== 'bytes') return jsonContent(description, ref(`${componentName(name)}Reply`));
  const type = reply === 'bytes' ? 'application/octet-stream' : 'text/plain';
  return { description, content: { [type]: { schema: { type: 'string' } } } };
}

function pathParameter(name: string, description: string, example: string): Json {
  return { name, in: 'path', required: true, schema: { type: 'string' }, description, example };
}

function jsonContent(description: string, schema: Json): Json {
  return { description, content: { 'application/json': { schema } } };
}

function operationId(name: string): string {
  const joined = componentName(name.replaceAll(/\W+/g, '-'));
  return joined.charAt(0).toLowerCase() + joined.slice(1);
}

import { type TSchema, Type } from 'typebox';

/** The schema of a value that may be null. */
export function orNull<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Union([schema, Type.Null()], { description });
}

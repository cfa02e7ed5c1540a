-- Page to which signers return after signing or declining.
alter table envelope add column return_url text;
